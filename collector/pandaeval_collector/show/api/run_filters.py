"""The filters of lists as a part of the requests for runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import BaseModel, ConfigDict, Field, create_model

from pandaeval_collector.show.api.filters import filter_types, wanted_of
from pandaeval_collector.store.listed import Wanted


class FilterFields(BaseModel):
    """Which traces, as the lists take it. What is left out excludes nothing."""

    model_config = ConfigDict(extra="forbid")

    def wanted(self) -> Wanted:
        """Return the filters in the store's form."""
        return wanted_of(**self.model_dump())


if TYPE_CHECKING:  # the class is made at run time, which no checker can follow
    RunFilters = FilterFields
else:
    RunFilters = create_model("RunFilters", __base__=FilterFields, __doc__=FilterFields.__doc__, **filter_types(Field))
