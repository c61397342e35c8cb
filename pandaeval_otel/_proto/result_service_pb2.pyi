from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Optional as _Optional

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
