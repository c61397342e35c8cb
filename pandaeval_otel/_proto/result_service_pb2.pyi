from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Optional as _Optional

DESCRIPTOR: _descriptor.FileDescriptor

class WatchResultsRequest(_message.Message):
    __slots__ = ("session_id", "trace_id", "agent", "metric", "after")
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    TRACE_ID_FIELD_NUMBER: _ClassVar[int]
    AGENT_FIELD_NUMBER: _ClassVar[int]
    METRIC_FIELD_NUMBER: _ClassVar[int]
    AFTER_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    trace_id: str
    agent: str
    metric: str
    after: int
    def __init__(self, session_id: _Optional[str] = ..., trace_id: _Optional[str] = ..., agent: _Optional[str] = ..., metric: _Optional[str] = ..., after: _Optional[int] = ...) -> None: ...

class WatchResultsResponse(_message.Message):
    __slots__ = ("cursor", "result_json")
    CURSOR_FIELD_NUMBER: _ClassVar[int]
    RESULT_JSON_FIELD_NUMBER: _ClassVar[int]
    cursor: int
    result_json: str
    def __init__(self, cursor: _Optional[int] = ..., result_json: _Optional[str] = ...) -> None: ...

class GetSessionRequest(_message.Message):
    __slots__ = ("session_id", "page_size", "page_token")
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    page_size: int
    page_token: str
    def __init__(self, session_id: _Optional[str] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class GetSessionResponse(_message.Message):
    __slots__ = ("found", "closed", "traces", "result_json", "next_page_token")
    FOUND_FIELD_NUMBER: _ClassVar[int]
    CLOSED_FIELD_NUMBER: _ClassVar[int]
    TRACES_FIELD_NUMBER: _ClassVar[int]
    RESULT_JSON_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    found: bool
    closed: bool
    traces: int
    result_json: _containers.RepeatedScalarFieldContainer[str]
    next_page_token: str
    def __init__(self, found: bool = ..., closed: bool = ..., traces: _Optional[int] = ..., result_json: _Optional[_Iterable[str]] = ..., next_page_token: _Optional[str] = ...) -> None: ...
