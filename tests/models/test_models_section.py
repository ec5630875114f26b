"""Roles, and the `models:` section of a suite."""

from __future__ import annotations

import sys
from decimal import Decimal
from importlib.metadata import EntryPoint

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deemster.engine.model_access import build_model_access
from deemster.errors import ConfigurationError
from deemster.models import FakeChat, FakeEmbedding, Price, Role
from deemster.models.model_roles import as_role, concurrency_bounds, missing_role_message
from deemster.models.models_section import read_models

KEY = "sk-test-0123456789abcdef"
ENVIRON = {"JUDGE_KEY": KEY, "JUDGE_URL": "https://models.example/v1", "EMPTY": ""}
JUDGE = {"base_url": "${JUDGE_URL}", "model": "m-1", "api_key_env": "JUDGE_KEY"}
LOCAL = {"embedding": {"client": "fakes:vectors"}}


def place(path):
    return "suite.yml:" + "/".join(map(str, path))


def load(path):
    return {"fakes:vectors": FakeEmbedding(), "fakes:Chat": FakeChat, "fakes:nothing": 7}[path]


def read(section, **options):
    if isinstance(section, dict):
        section = {**LOCAL, **section}
    options = {"environ": ENVIRON, "load": load, **options}
    return read_models(section, place=place, **options)


def faults_of(section, **options):
    with pytest.raises(ConfigurationError) as raised:
        read(section, **options)
    return [
        (fault.where.removeprefix("suite.yml:models").removeprefix("/"), fault.message) for fault in raised.value.issues
    ]


def test_role_is_read_with_all_its_settings():
    role = read(
        {
            "judge": {
                **JUDGE,
                "concurrency": "2-9",
                "rpm": 500,
                "tpm": 90_000,
                "retries": 0,
                "timeout_s": 5,
                "total_timeout_s": 20.5,
                "max_retry_after_s": 3,
                "price": {"input": 0.15, "output": 0.6},
                "prices": {"m-1-long": {"input": 1, "output": 2}},
                "extra": {"top_p": 0.5, "user": "${EMPTY:-nobody}"},
            }
        }
    )["judge"]
    assert role.kind == "chat"
    assert role.bounds == (2, 9)
    assert (role.rpm, role.tpm) == (500, 90_000)
    assert role.policy == (0, 5, 20.5, 3)
    assert role.price_table.find("m-1-x") == Price(Decimal("0.15"), Decimal("0.6"))
    assert role.price_table.find("m-1-longer") == Price(Decimal(1), Decimal(2))
    assert role.model == "m-1"
    assert "https://models.example" in str(role.identity)
    assert "nobody" in str(role.identity)
    assert not role.is_local


def test_key_is_in_no_identity_and_no_name():
    role = read({"judge": JUDGE})["judge"]
    assert KEY not in repr(role)
    assert KEY not in repr(role.identity)
    assert role.secrets.redact(KEY) == "[removed]"


def test_role_named_embedding_is_embedding_by_default():
    other = {"base_url": "http://localhost:1", "model": "m"}
    roles = read({"embedding:large": other, "judge": other, "vectors": {**other, "kind": "embedding"}})
    assert {name: role.kind for name, role in roles.items()} == {
        "embedding": "embedding",
        "embedding:large": "embedding",
        "judge": "chat",
        "vectors": "embedding",
    }


@pytest.mark.parametrize(
    ("entry", "path", "message"),
    [
        ({**JUDGE, "modle": "x"}, "judge/modle", "Did you mean `model`?"),
        ({**JUDGE, "api_key": "hush"}, "judge/api_key", "Did you mean `api_key_env`?"),
        ({**JUDGE, "api_key_env": "NO_KEY"}, "judge/api_key_env", "no variable `NO_KEY`"),
        ({**JUDGE, "api_key_env": "sk-0123-abcdef"}, "judge/api_key_env", "No file holds the key itself."),
        ({**JUDGE, "base_url": "${NO_URL}"}, "judge/base_url", "no variable `NO_URL`; `${NO_URL:-default}`"),
        ({**JUDGE, "base_url": 7}, "judge/base_url", "must be text, not a number"),
        ({**JUDGE, "model": " "}, "judge/model", "is blank"),
        ({"base_url": "http://x"}, "judge", "needs `model`"),
        ({"model": "x"}, "judge", "exactly one of `provider`, `base_url`, `client`, `embedded`, `replay`."),
        ({**JUDGE, "client": "fakes:Chat"}, "judge", "not `base_url` and `client`"),
        ({**JUDGE, "concurrency": "64-5"}, "judge/concurrency", "range such as `5-64`"),
        ({**JUDGE, "concurrency": 0}, "judge/concurrency", "range such as `5-64`"),
        ({**JUDGE, "concurrency": True}, "judge/concurrency", "range such as `5-64`"),
        ({**JUDGE, "rpm": 0}, "judge/rpm", "at least 1, not 0"),
        ({**JUDGE, "rpm": True}, "judge/rpm", "at least 1"),
        ({**JUDGE, "retries": -1}, "judge/retries", "at least 0, not -1"),
        ({**JUDGE, "timeout_s": 0}, "judge/timeout_s", "above 0"),
        ({**JUDGE, "timeout_s": "60"}, "judge/timeout_s", "a number of seconds above 0, not text"),
        ({**JUDGE, "price": {"input": -1}}, "judge/price/input", "not -1"),
        ({**JUDGE, "price": 3}, "judge/price", "must be a map with `input`, not a number"),
        ({**JUDGE, "price": {"input": 1, "outptu": 2}}, "judge/price/outptu", "Did you mean `output`?"),
        ({**JUDGE, "prices": [1]}, "judge/prices", "must be a map, not a list"),
        ({**JUDGE, "extra": [1]}, "judge/extra", "must be a map, not a list"),
        ({**JUDGE, "kind": "embeddings"}, "judge/kind", "Did you mean `embedding`?"),
        ({"client": "fakes:nothing"}, "judge/client", "not a int"),
        ({"client": "fakes:vectors", "api_key_env": "X"}, "judge/api_key_env", "for models with a `base_url`"),
        ({"embedded": 7}, "judge/embedded", "must be `true`, or the path of a GGUF file, not a number"),
        ({"embedded": "large", "kind": "embedding"}, "judge/embedded", "is `true`, not 'large'"),
        ({"replay": "none.jsonl"}, "judge/replay", "no file `none.jsonl`"),
        ({"replay": "a", "record": "b"}, "judge/record", "`replay` or `record`"),
        ("gpt", "judge", "models.judge must be a map, not text"),
    ],
)
def test_issue_has_line_and_suggestion(entry, path, message):
    found = faults_of({"judge": entry})
    assert path in [where for where, _ in found]
    assert any(where == path and message in said for where, said in found)
    assert "hush" not in str(found)


def test_all_issues_are_listed_at_once():
    found = faults_of({"judge": {**JUDGE, "rpm": 0, "tmp": 1}, "panel": {"retries": "x"}, "7 up": {}})
    assert [where for where, _ in found] == ["judge/rpm", "judge/tmp", "panel/retries", "panel", "7 up"]


def test_section_that_is_not_a_map_is_error():
    assert "a map of roles" in faults_of(["judge"])[0][1]


def test_unset_key_is_allowed_if_no_model_is_asked():
    assert read({"judge": JUDGE}, environ={}, calls=False)["judge"].model == "m-1"


def test_custom_client_class_is_built_with_extra():
    role = read({"judge": {"client": "fakes:Chat", "extra": {"answers": ["yes"], "model": "mine"}}})["judge"]
    assert isinstance(role.client, FakeChat)
    assert role.client.model == "mine"
    assert role.is_local


def test_client_is_imported_by_its_path(monkeypatch):
    module = type(sys)("brought")
    module.judge = FakeChat(["yes"])
    monkeypatch.setitem(sys.modules, "brought", module)
    models = {"judge": {"client": "brought:judge"}, "embedding": {"base_url": "http://x", "model": "m"}}
    assert build_model_access(models).roles["judge"].client is module.judge
    with pytest.raises(ConfigurationError, match=r"models.judge: The client `brought:jugde` cannot .* mean `judge`"):
        build_model_access({"judge": {"client": "brought:jugde"}})
    with pytest.raises(ConfigurationError, match="an import path such as"):
        build_model_access({"judge": {"client": "no-such-plug-in"}})


def test_recordings_are_relative_to_the_suite(tmp_path):
    (tmp_path / "r.jsonl").write_text("")
    roles = read({"judge": {"replay": "r.jsonl"}, "other": {**JUDGE, "record": "new.jsonl"}}, folder=tmp_path)
    assert roles["judge"].client is None
    assert roles["judge"].recording == str(tmp_path / "r.jsonl")
    assert roles["other"].recording == str(tmp_path / "new.jsonl")


@given(st.integers(1, 999), st.integers(0, 999))
def test_range_of_concurrency_goes_from_low_to_high(low, more):
    assert concurrency_bounds(f"{low}-{low + more}") == (low, low + more)
    assert concurrency_bounds(low) == concurrency_bounds(str(low)) == (low, low)


@pytest.mark.parametrize("odd", ["", "a", "0", "-5", "5-", "9-5", "1.5", 1.5, True, None, 0, "٣"])
def test_invalid_concurrency_is_error(odd):
    with pytest.raises(ValueError, match="concurrency"):
        concurrency_bounds(odd)


@pytest.mark.parametrize(
    "setting", [{"rpm": 0}, {"retries": -1}, {"timeout_s": float("nan")}, {"batch": 0}, {"concurrency": "x"}]
)
def test_impossible_role_settings_are_error(setting):
    with pytest.raises(ValueError, match=next(iter(setting))):
        Role(client=None, **setting)


def test_client_object_becomes_a_role():
    assert as_role("embedding", FakeEmbedding()).kind == "embedding"
    assert as_role("anything", FakeEmbedding()).kind == "embedding"
    assert as_role("judge", FakeChat(["a"], model="m")).model == "m"
    role = Role(client=FakeChat(["a"]), retries=0)
    assert as_role("judge", role) is role
    with pytest.raises(TypeError, match="`complete` or `embed_many`, not a int"):
        as_role("judge", 7)


def test_missing_role_is_error_with_example():
    assert missing_role_message("judge", [], embeds=False) == (
        "This asks the model `judge`, which is not there. Write `models: {judge: {provider: openai, model: ...}}`."
    )


def test_default_embedding_is_the_embedded_model():
    roles = read_models(None, place=place, environ={}, load=load)
    assert list(roles) == ["embedding"]
    assert roles["embedding"].kind == "embedding"
    assert roles["embedding"].is_local
    assert list(read_models({}, place=place, environ={}, load=load)) == ["embedding"]
    other = read_models({"vectors": {"embedded": True, "kind": "embedding"}}, place=place, environ={}, load=load)
    assert other["vectors"].is_local


@pytest.mark.parametrize("host", ["localhost:11434", "127.0.0.1:8000", "[::1]:80"])
def test_local_server_needs_no_key(host):
    judge = read({"judge": {**JUDGE, "base_url": f"http://{host}/v1", "api_key_env": "NO_KEY"}})["judge"]
    assert judge.secrets.redact(KEY, shapes=False) == KEY


@pytest.mark.parametrize("url", ["https://localhost.example/v1", "https://127.0.0.1.example/v1", "http://10.0.0.7/v1"])
def test_remote_server_needs_its_key(url):
    assert faults_of({"judge": {**JUDGE, "base_url": url, "api_key_env": "NO_KEY"}})


def test_role_with_recording_needs_no_key(tmp_path):
    judge = {**JUDGE, "api_key_env": "NO_KEY", "record": "answers.jsonl"}
    assert faults_of({"judge": judge}, folder=tmp_path)
    (tmp_path / "answers.jsonl").write_bytes(b"")
    assert read({"judge": judge}, folder=tmp_path)["judge"].recording == str(tmp_path / "answers.jsonl")


def test_embedded_judge_has_concurrency_one_by_default(tmp_path):
    pytest.importorskip("xllamacpp")
    (tmp_path / "small.gguf").write_bytes(b"GGUF")
    judge = read({"judge": {"embedded": "small.gguf"}}, folder=tmp_path)["judge"]
    assert (judge.concurrency, judge.timeout_s) == (1, 300.0)
    judge = read({"judge": {"embedded": "small.gguf", "concurrency": "1-2", "timeout_s": 9}}, folder=tmp_path)["judge"]
    assert (judge.concurrency, judge.timeout_s) == ("1-2", 9)


@pytest.mark.parametrize(
    "key",
    [
        "sk-0123-abcdef",
        "gsk_Zq8T0vXw2LmN4pRs6tUv",
        "AIzaSyA0bCdEfGhIjKlMnOpQrStUvWxYz012345",
        "hf_aBcDeFgHiJkLmNoPqRs7",
        "0a1b2c3d4e5f60718293a4b5c6d7e8f9",
        "XQ7PLMZ4K9W2R8T1V6B3",
    ],
)
@pytest.mark.parametrize("url", ["https://models.example/v1", "http://127.0.0.1:8000/v1"])
def test_key_in_place_of_variable_name_is_error_without_key(key, url):
    for calls in (True, False):
        ((where, message),) = faults_of({"judge": {**JUDGE, "base_url": url, "api_key_env": key}}, calls=calls)
        assert where == "judge/api_key_env"
        assert "No file holds the key itself." in message
        assert key not in message


@pytest.mark.parametrize("name", ["MY_COMPANYS_OPENAI_KEY_2", "internationalization_key", "key2"])
def test_name_of_a_variable_that_is_not_set_is_shown(name):
    ((_, message),) = faults_of({"judge": {**JUDGE, "api_key_env": name}})
    assert f"no variable `{name}`" in message


def test_set_variable_may_have_any_name():
    name = "gsk_Zq8T0vXw2LmN4pRs6tUv"
    judge = read({"judge": {**JUDGE, "api_key_env": name}}, environ={**ENVIRON, name: KEY})["judge"]
    assert judge.secrets.found_in(f"the key {KEY}")


HUSH = "hush-hush-0123"


class Keyed(FakeChat):
    """A client of one's own that is given its key."""

    def __init__(self, **given):
        super().__init__(["yes"])
        self.given = given


class Failing:
    """A client that fails when it is made."""

    def __init__(self, kind, **given):
        raise {"os": OSError, "key": KeyError, "value": ValueError, "exit": SystemExit}[kind](f"no luck with {given}")


@pytest.mark.parametrize("extra", [{"api_key": HUSH}, {"headers": {"Authorization": f"Bearer {HUSH}"}}])
def test_key_for_custom_client_is_secret(extra):
    judge = read(
        {"judge": {"client": "mine:Keyed", "extra": extra}},
        load=lambda path: Keyed if path.startswith("mine") else load(path),
    )["judge"]
    assert judge.client.given == extra
    assert judge.secrets.redact(f"401 for the key {HUSH}") == "401 for the key [removed]"
    assert HUSH not in repr(judge.hidden)


@pytest.mark.parametrize(
    ("kind", "told"),
    [("os", "OSError: no luck"), ("key", "KeyError: "), ("value", "no luck"), ("exit", "SystemExit: no luck")],
)
def test_failing_client_constructor_is_error_without_key(kind, told):
    entry = {"client": "mine:Failing", "extra": {"kind": kind, "api_key": HUSH}}
    ((where, message),) = faults_of(
        {"judge": entry}, load=lambda path: Failing if path.startswith("mine") else load(path)
    )
    assert where == "judge/client"
    assert message.startswith(told)
    assert HUSH not in message


def test_class_in_place_of_client_is_error():
    with pytest.raises(TypeError, match=r"`models.judge` is a client, not the class FakeChat: make one"):
        as_role("judge", FakeChat)


def test_prices_in_plain_numbers_are_exact():
    role = Role(client=None, prices={"": Price(0.1, 3)})
    assert role.price_table.find("m").cost(3_000_000, 0) == Decimal("0.3")


@pytest.mark.parametrize("price", [Price(-1), Price(float("nan")), Price("1"), Price(True), {"input": 1}, 0.5])
def test_invalid_price_is_error(price):
    with pytest.raises(ValueError, match="A price is"):
        Role(client=None, prices={"": price})


def test_plugin_client_is_found_by_name(monkeypatch):
    def points(group):
        assert group == "deemster.models"
        return [EntryPoint("fake", "deemster.models.fake_models:FakeEmbedding", group)]

    monkeypatch.setattr("importlib.metadata.entry_points", points)
    role = build_model_access({"embedding": {"client": "fake", "extra": {"dimensions": 3}}}).roles["embedding"]
    assert isinstance(role.client, FakeEmbedding)
    assert role.client.dimensions == 3
    with pytest.raises(ConfigurationError, match="Did you mean `fake`"):
        build_model_access({"embedding": {"client": "fakes"}})


def test_client_may_name_its_secrets_in_a_plain_list():
    class Named(FakeChat):
        secrets = ("hush-hush-hush",)

    assert Role(client=Named([])).secrets.redact("a hush-hush-hush") == "a [removed]"
