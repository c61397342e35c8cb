"""Shapes of secrets as their providers document them, each in a text in which agents meet it; and ordinary values.

A shape is a template: ``{A32}`` stands for 32 letters and digits, ``{a}`` for small ones with digits, ``{U}`` for large
ones with digits, ``{h}`` for hexadecimal, ``{d}`` for digits, ``{w}`` for letters, digits, ``-`` and ``_``, ``{b}`` for
base64. The secret stands between ``«`` and ``»``, which are taken out.
"""

from __future__ import annotations

import random
import re
import string
from collections.abc import Iterator

_LETTERS = {
    "A": string.ascii_letters + string.digits,
    "a": string.ascii_lowercase + string.digits,
    "U": string.ascii_uppercase + string.digits,
    "h": "0123456789abcdef",
    "d": string.digits,
    "w": string.ascii_letters + string.digits + "-_",
    "b": string.ascii_letters + string.digits + "+/",
}
_PLACE = re.compile(r"\{([AaUhdwb])(\d{1,3})\}")
_ID = "{h8}-{h4}-{h4}-{h4}-{h12}"

SHAPES = {
    "groq": "GROQ_API_KEY=«gsk_{A52}»",
    "xai": "client = OpenAI(api_key='«xai-{A80}»', base_url='https://api.x.ai/v1')",
    "perplexity": "I used the key «pplx-{A48}» for the search.",
    "langsmith": "2026-01-01T10:00:00Z INFO tracing with «lsv2_pt_{h32}_{h10}»",
    "langsmith service": '{"headers": {"x-api-key": "«lsv2_sk_{h32}_{h10}»"}}',
    "databricks": "databricks configure --host https://x.cloud.databricks.com <<< «dapi{h32}»",
    "vault": "vault login «hvs.{w95}»",
    "vault batch": "X-Vault-Token: «hvb.{w140}»",
    "vault old": "Success! You are now authenticated. token «s.{A20}9Zq1»",
    "digitalocean": "doctl auth init -t «dop_v1_{h64}»",
    "digitalocean oauth": "DO_TOKEN: «doo_v1_{h64}»",
    "shopify": "curl -H 'X-Shopify-Access-Token: «shpat_{h32}»' https://a.myshopify.com/admin",
    "shopify app": "secret «shpss_{h32}» of the app",
    "notion old": 'Client(auth="«secret_{A43}»")',
    "notion": "NOTION_TOKEN=«ntn_{d11}{A35}»",
    "linear": "Authorization: «lin_api_{A40}»",
    "postman": "X-API-Key: «PMAK-{h24}-{h34}»",
    "twilio": "account AC{h32}, key «SK{h32}», ready",
    "telegram": "GET https://api.telegram.org/bot«{d10}:AA{w33}»/getMe",
    "discord bot": "bot.run('«MT{A22}.{w6}.{w38}»')",
    "discord webhook": "posting to https://discord.com/api/webhooks/{d18}/«{w68}»",
    "atlassian": "curl -u ann@example.org:«ATATT3xFfGF0{w180}» https://x.atlassian.net",
    "airtable": "AIRTABLE: «pat{A14}.{h64}»",
    "figma": "X-Figma-Token: «figd_{w40}»",
    "replicate": "export REPLICATE_API_TOKEN=«r8_{A37}»",
    "tavily": "TavilyClient(«tvly-dev-{A32}»)",
    "pinecone": 'Pinecone(api_key="«pcsk_{A6}_{A60}»")',
    "nvidia": "nvidia key «nvapi-{w64}»\n",
    "google oauth": '"client_secret":"«GOCSPX-{w28}»"',
    "grafana": "Bearer «glsa_{A32}_{h8}»",
    "grafana cloud": "token: «glc_eyJ{b90}=»",
    "new relic": "api key «NRAK-{U27}» rejected",
    "sentry": "SENTRY_AUTH_TOKEN=«sntrys_eyJ{b120}_{b43}»",
    "sentry user": "sentry-cli --auth-token «sntryu_{h64}» info",
    "mailgun": "requests.post(url, auth=('api', '«key-{h32}»'))",
    "mailchimp": "the list needs «{h32}-us12» as its key",
    "square": "square: «EAAA{w60}»",
    "square secret": "square «sq0csp-{w43}» is the secret",
    "planetscale": "pscale «pscale_tkn_{w43}» --org a",
    "supabase": "supabase login --token «sbp_{h40}»",
    "supabase secret": "createClient(url, '«sb_secret_{w22}_{w8}»')",
    "netlify": "NETLIFY: «nfp_{A36}»",
    "doppler": "doppler run «dp.pt.{A43}»",
    "docker": "docker login -u a -p «dckr_pat_{w27}»",
    "gitlab runner": "gitlab-runner register --token «glrt-{w20}»",
    "gitlab deploy": "git clone https://gitlab+deploy:«gldt-{w20}»@gitlab.com/a/b",
    "bitbucket": "app password «ATBB{A32}» of bitbucket",
    "azure ad": "AZURE_CLIENT: «{A3}8Q~{w34}»",
    "e2b": "Sandbox(api_key=«e2b_{h40}»)",
    "firecrawl": "FirecrawlApp(«fc-{h32}»)",
    "elevenlabs": "xi-api-key: «sk_{h48}»",
    "jina": "jina: «jina_{h32}{w28}»",
    "cerebras": "cerebras «csk-{a48}»",
    "resend": "Resend('«re_{A8}_{A24}»')",
    "posthog": "posthog «phx_{A43}»",
    "age": "# created\n«AGE-SECRET-KEY-1{U58}»\n",
    "slack app": "xapp: «xapp-1-A{U10}-{d13}-{h64}»",
    "weights and biases": "WANDB_API_KEY=«{h40}»",
    "env password": "PGPASSWORD=«{A12}» psql -h db",
    "env any token": "export SOME_SERVICE_TOKEN=«{A24}»",
    "env any key": "ACME_KEY=«{A32}»",
    "environ": 'os.environ["API_KEY"] = "«{A30}»"',
    "environ js": "process.env.STRIPE_SECRET = '«{A30}»'",
    "yaml key": "env:\n  MY_API_KEY: «{A30}»\n",
    "kubernetes": "- name: DB_PASSWORD\n  value: «{A20}»\n",
    "json camel": '{"dbPassword": "«{A14}»", "host": "db"}',
    "mysql password": "MYSQL_ROOT_PASSWORD: «{A14}»",
    "docker auth": '{"auths": {"https://index.docker.io/v1/": {"auth": "«YW5uOmh1bnRlcjIyeA==»"}}}',
    "curl user": "curl -s -u admin:«{A14}» https://host/api",
    "curl long user": "curl --user 'admin:«{A8}!{A6}»' https://host/api",
    "aws presigned": "https://b.s3.amazonaws.com/k?X-Amz-Date=20260101&X-Amz-Signature=«{h64}»",
    "aws session": "https://b.s3.amazonaws.com/k?X-Amz-Security-Token=«IQoJb3JpZ2luX2Vj{A200}»&X-Amz-Date=1",
    "netrc": "machine api.example.org login ann password «{A12}»",
    "pgpass": "db.example.org:5432:app:ann:«{A12}»",
    "address with at": "postgres://u:«p{A6}@{A6}»@host/db",
    "sql": "CREATE USER ann IDENTIFIED BY '«{A12}»'",
    "docker file": "ENV OPENAI_TOKEN «{A30}»",
    "npmrc": "//registry.npmjs.org/:_authToken=«" + _ID + "»",
}
"""78 shapes that the rules were made for."""

LATER = {
    "cloudflare origin": "origin ca: «v1.0-{h24}-{h146}»",
    "terraform cloud": 'credentials "app.terraform.io" {\n  token = "«{A14}.atlasv1.{w67}»"\n}',
    "hubspot": "hubspot client with «pat-na1-" + _ID + "»",
    "typeform": "curl -H 'Authorization: Bearer «tfp_{w43}_{w14}»'",
    "shippo": "shippo said: token «shippo_live_{h40}» is revoked",
    "prefect": "prefect cloud login -k «pnu_{A36}»",
    "pulumi": "PULUMI: «pul-{h40}»",
    "openshift": "oc login --token=«sha256~{w43}» --server=https://api:6443",
    "dynatrace": "Api-Token «dt0c01.{U24}.{U64}»",
    "sourcegraph": "src login with «sgp_{h16}_{h40}»",
    "readme": "rdme uses «rdme_{a70}»",
    "octopus": "octo --apiKey «API-{U26}»",
    "artifactory": "curl -H 'X-JFrog-Art-Api: «AKCp{A69}»'",
    "brevo": "brevo: «xkeysib-{h64}-{A16}»",
    "github app": "git -c http.extraheader='AUTHORIZATION: bearer «ghs_{A36}»' fetch",
    "langfuse": 'Langfuse(secret_key="«sk-lf-' + _ID + '»")',
    "openrouter": "{'role': 'user', 'content': 'use «sk-or-v1-{h64}» please'}",
    "teams webhook": "https://a.webhook.office.com/webhookb2/«"
    + _ID
    + "@"
    + _ID
    + "/IncomingWebhook/{h32}/"
    + _ID
    + "»",
    "google signed": "https://storage.googleapis.com/b/o?X-Goog-Expires=9&X-Goog-Signature=«{h256}»",
    "powershell": '$env:AZURE_OPENAI_API_KEY = "«{h32}»"',
    "php": "define('DB_PASSWORD', '«{A16}»');",
    "ini": "[db]\nuser = ann\npassword = «{A10}#{A4}»\n",
    "toml": '[service]\nauth_token = "«{A40}»"\n',
    "java properties": "spring.datasource.password=«{A14}»",
    "ruby hash": ':api_key => "«{A24}»"',
    "helm set": "helm install x y --set auth.rootPassword=«{A14}»,replicas=2",
    "kubectl literal": "kubectl create secret generic db --from-literal=password=«{A14}»",
    "docker run": "docker run -e SLACK_SIGNING_SECRET=«{h32}» image",
    "form": "POST /login username=ann&password=«{A12}»&remember=1",
    "xml attribute": '<server id="a" username="ann" password="«{A12}»"/>',
    "app settings": '<add key="SendGridApiKey" value="«{A30}»" />',
    "dotnet": "Server=db;User Id=sa;Password=«{A6}!{A6}»;Encrypt=true",
    "openssl": "openssl rsa -in k.pem -passin pass:«{A12}»",
    "sshpass": "sshpass -p «{A12}» ssh ann@host",
    "mongo address": "mongodb+srv://ann:«{A14}»@cluster0.abcd.mongodb.net/app?retryWrites=true",
    "redis address": "redis://default:«{A32}»@host:6379/0",
    "clone address": "git clone https://ann:«{A20}»@git.example.org/a/b.git",
    "escaped json": '{"log": "{\\"accessToken\\": \\"«{A40}»\\", \\"user\\": 1}"}',
    "tfvars": 'db_admin_password = "«{A8}%{A6}»"',
    "passwd prose": "The login is ann and the password: «{A10}», valid until Friday",
}
"""40 more shapes, written after the rules."""

LAST = {
    "vercel": "vercel --token «vcp_{A56}» deploy",
    "fly": 'FLY_ACCESS="FlyV1 «fm2_{b120}»"',
    "heroku": "heroku answered for «HRKU-AA{w56}»",
    "crates": "cargo login «cio{A32}»",
    "rubygems": ":gems: rubygems_«{h48}»",
    "sonar": "mvn sonar:sonar -Dsonar.login=«sqp_{h40}»",
    "okta": "Authorization: SSWS «00{w40}»",
    "splunk": "curl -H 'Authorization: Splunk " + "«{h8}-{h4}-{h4}-{h4}-{h12}»' https://h:8088",
    "mapbox": "mapboxgl.accessToken = '«sk.eyJ{A60}.{w22}»'",
    "dropbox": "dropbox: «sl.B{w130}»",
    "razorpay": "razorpay «rzp_live_{A14}» in use",
    "duffel": "duffel «duffel_test_{w43}»",
    "plaid": "plaid gave «access-sandbox-" + _ID + "»",
    "stripe webhook": "stripe listen: your signing secret is «whsec_{A32}»",
    "algolia": "ALGOLIA_ADMIN_KEY=«{h32}»",
    "cloudinary": "CLOUDINARY_URL=cloudinary://{d15}:«{A27}»@demo",
    "smtp address": "smtp://ann%40example.org:«{A10}%21{A4}»@mail.example.org:587",
    "wget": "wget --http-user=ann --http-password=«{A12}» https://host/f",
    "gpg": "gpg --batch --passphrase «{A16}» -d f.gpg",
    "ansible": "host1 ansible_user=root ansible_ssh_pass=«{A12}»",
    "wifi": "wpa_passphrase='«{A12}»'",
    "basic header": "authorization: Basic «YW5uOmh1bnRlcjIyLTEyMzQ1Njc4»",
    "kafka": 'sasl.jaas.config=org.X required username="a" password="«{A14}»";',
    "python dict": "{'model': 'm', 'api_key': '«{A32}»', 'timeout': 3}",
    "windows": "set MY_APP_TOKEN=«{A24}» && run.bat",
    "fish": "set -gx MY_APP_KEY «{A24}»",
    "rclone": "[remote]\ntype = sftp\npass = «{w24}»\n",
    "aws file": "[default]\naws_access_key_id = AKIA{U16}\naws_secret_access_key = «{b40}»",
    "aws json": '{"SecretAccessKey": "«{b40}»", "SessionToken": "x"}',
    "aws session": '{"SessionToken": "«IQoJb3JpZ2luX2Vj{A200}»"}',
    "kubernetes secret": "kind: Secret\ndata:\n  password: «{b16}==»\n",
    "unseal": "Unseal Key 1: «{b43}=»",
    "jwk": '{"kty": "EC", "crv": "P-256", "x": "{w43}", "d": "«{w43}»"}',
    "putenv": "os.putenv('TWILIO_AUTH_TOKEN', '«{h32}»')",
    "encoded query": "redirect=https%3A%2F%2Fx%2F%3Fkey%3D«gsk_{A52}»",
    "header dict": 'headers = {"X-Auth-Token": "«{A30}»"}',
    "azure key header": "Ocp-Apim-Subscription-Key: «{h32}»",
    "log line": "level=info msg=login user=ann password=«{A10}» took=3ms",
    "go": 'cfg := Config{APIKey: "«{A32}»", Region: "eu"}',
    "jdbc": "jdbc:postgresql://db/app?user=ann&password=«{A14}»&ssl=true",
}
"""Another 40, written after all of the rules."""


def said(shape: str, draw: random.Random) -> tuple[str, str]:
    """Return a text and the secret in it."""
    text = _PLACE.sub(lambda place: "".join(draw.choices(_LETTERS[place[1]], k=int(place[2]))), shape)
    before, _, rest = text.partition("«")
    secret, _, after = rest.partition("»")
    return before + secret + after, secret


_ORDINARY = (
    "the order " + _ID + " is on its way",
    '{"request_id": "' + _ID + '", "status": "ok"}',
    "idempotency_key=" + _ID,
    "Idempotency-Key: " + _ID,
    "trace {h32} span {h16}",
    '{"traceparent": "00-{h32}-{h16}-01"}',
    "call_{A24} answered",
    '{"tool_call_id": "toolu_01{A22}"}',
    "chatcmpl-{A29}",
    "resp_{h48} follows msg_{h48}",
    "asst_{A24} thread_{A24} run_{A24} file-{A24}",
    "sha256:{h64}",
    "the checksum of the file is {h64}, md5 {h32}",
    "commit {h40} fixes it, see {h7}",
    "git checkout {h40}",
    '{"etag": "{h32}", "cache_key": "{h40}"}',
    "integrity sha512-{b86}==",
    "ORDER-2026-{d12}",
    "order_key: ORD-{d6}-{U8}",
    "tracking number 1Z{U16}",
    "2026-0{d1}-1{d1}T1{d1}:2{d1}:3{d1}.{d6}Z",
    "https://shop.example/parcels/{d8}?page={d1}&sort=asc&key=name",
    "https://docs.example.org/en/latest/guide/{a12}.html#section-{d2}",
    "http://localhost:8080/users?email=ann@example.org",
    "see https://github.com/a/b/blob/{h40}/src/main.py#L{d3}",
    "https://bucket.s3.amazonaws.com/{h8}/{a20}.png",
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAA{b360}==",
    '{"image": "/9j/4AAQSkZJRgABAQAAAQABAAD/{b400}=="}',
    "gpt-4o-mini-2024-07-18 and claude-3-5-sonnet-20241022",
    "anthropic.claude-3-5-sonnet-20240620-v1:0 on bedrock/us-east-1",
    "meta-llama/Llama-3.3-70B-Instruct-Turbo, text-embedding-3-small",
    "/usr/local/lib/python3.11/site-packages/pkg/module_{a6}.py:{d3}",
    "C:\\\\Users\\\\ann\\\\Documents\\\\report-{d4}.docx",
    "PWD=/srv/app/work/project-{d2} OLDPWD=/srv/app",
    "arn:aws:iam::{d12}:role/service-role/agent-{a8}",
    "arn:aws:lambda:eu-central-1:{d12}:function:score-{a6}:{d1}",
    "arn:aws:kms:eu-west-1:{d12}:key/" + _ID,
    "token_count={d3}, max_tokens: {d4}, total_tokens={d5}",
    '{"usage": {"prompt_tokens": {d4}, "completion_tokens": {d3}}, "max_tokens": {d4}}',
    "tokens: {d5}; tokens_per_second={d2}.{d1}",
    '{"next_page_token": "{A32}", "items": []}',
    "primary_key=customer_id_{d4}, foreign_key: order_{d6}",
    '{"primary_key": "{A20}", "sort_key": "user#{d12}", "partition_key": "{A24}"}',
    "sorted by key: created_at, sort key: price_{d4}",
    "key: value{d4}, the key: {d4} of them",
    "the secret of good bread: patience, {d2} hours of it",
    "Press any key: the monkey ate a turkey at 1{d1}:3{d1}",
    "docker run -u 1000:1000 --user 1000:1000 image:{d2}",
    "pods/agent-{h10}-{a5} is ready, node ip-10-0-{d2}-{d2}.ec2.internal",
    "lat 48.{d6}, long 11.{d6}; IBAN and phone stay",
)


def ordinary(draw: random.Random) -> Iterator[str]:
    """Yield 500 texts with values that look like secrets and are none."""
    for number in range(500):
        shape = _ORDINARY[number % len(_ORDINARY)]
        yield _PLACE.sub(lambda place: "".join(draw.choices(_LETTERS[place[1]], k=int(place[2]))), shape)
