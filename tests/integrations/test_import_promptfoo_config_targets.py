"""What prompts, providers and tests in other files of a promptfoo config become."""

from __future__ import annotations

import json
import sys
from typing import Any, NamedTuple

import pytest
import yaml

import deemster as dm
from deemster.errors import InputError
from deemster.integrations.import_promptfoo_config import SuiteFiles, read_promptfoo_config
from deemster.integrations.source_file import SourceFile
from deemster.metrics.import_user_code import import_object
from deemster.testing import ModelServer
from tests.cli.workspace import called

OPENAI = "openai:gpt-5-mini"


class Imported(NamedTuple):
    """What a config became."""

    files: SuiteFiles
    suite: dict[str, Any]

    @property
    def inputs(self) -> list[dict[str, Any]]:
        return [dict(sample.input) for sample in self.files.dataset]

    def says(self, part: str) -> bool:
        return any(part in sentence for sentence in self.files.left_out)


def imported(tmp_path, config, **files):
    """A config, as YAML or as data, with files beside it, by their names with `__` for the dot."""
    for name, text in files.items():
        (tmp_path / name.replace("__", ".")).write_text(text)
    path = tmp_path / "promptfooconfig.yaml"
    path.write_text(config if isinstance(config, str) else yaml.safe_dump(config, sort_keys=False))
    found = read_promptfoo_config(SourceFile(path))
    return Imported(found, yaml.safe_load(found.suite))


def with_prompts(*prompts, **config):
    return {"prompts": list(prompts), "providers": [OPENAI], "tests": [{"vars": {"q": "why"}}], **config}


def test_one_prompt_and_one_model_are_a_target(tmp_path):
    found = imported(tmp_path, with_prompts("Answer: {{ q }}"))
    assert found.suite["target"] == {"chat": "gpt-5-mini", "prompt": "prompt"}
    assert found.suite["models"] == {"gpt-5-mini": {"provider": "openai", "model": "gpt-5-mini"}}
    assert found.suite["prompts"] == {"prompt": "prompts/prompt.txt"}
    assert found.files.prompts == {"prompts/prompt.txt": "Answer: {{input.q}}\n"}
    assert "variants" not in found.suite
    assert found.files.left_out == ()


def test_prompts_and_models_are_a_grid(tmp_path):
    config = with_prompts(
        {"raw": "{{q}}", "label": "Plain one"},
        {"raw": "Please: {{q}}", "label": "polite"},
        providers=[OPENAI, {"id": "anthropic:messages:claude-sonnet-5", "label": "sonnet"}],
    )
    suite = imported(tmp_path, config).suite
    assert suite["target"] == {"chat": "gpt-5-mini", "prompt": "plain-one"}
    assert suite["variants"] == {"prompt": ["plain-one", "polite"], "chat": ["gpt-5-mini", "sonnet"]}


def test_models_with_settings_of_their_own_are_named_variants(tmp_path):
    config = with_prompts(
        "{{q}}",
        providers=[
            {"id": OPENAI, "label": "cold", "config": {"temperature": 0, "max_tokens": 9}},
            {"id": OPENAI, "label": "warm", "config": {"temperature": 1, "max_completion_tokens": 9}},
        ],
    )
    suite = imported(tmp_path, config).suite
    assert suite["target"] == {"prompt": "prompt", "max_tokens": 9}
    assert suite["variants"] == {
        "cold": {"chat": "cold", "temperature": 0},
        "warm": {"chat": "warm", "temperature": 1},
    }


def test_provider_is_asked_the_prompts_that_it_names(tmp_path):
    config = with_prompts(
        {"raw": "a {{q}}", "label": "a"},
        {"raw": "b {{q}}", "label": "b"},
        providers=[{"id": OPENAI, "prompts": ["a"]}, {"id": "groq:llama-4", "prompts": ["b"]}],
    )
    assert set(imported(tmp_path, config).suite["variants"]) == {"a / gpt-5-mini", "b / llama-4"}


@pytest.mark.parametrize(
    ("provider", "model"),
    [
        ("openai:chat:gpt-5", {"provider": "openai", "model": "gpt-5"}),
        ("openai:responses:gpt-5", {"provider": "openai", "model": "gpt-5"}),
        ("anthropic:claude-opus-5", {"provider": "anthropic", "model": "claude-opus-5"}),
        ("ollama:chat:qwen3:8b", {"provider": "ollama", "model": "qwen3:8b"}),
        ("openrouter:meta/llama-4:free", {"provider": "openrouter", "model": "meta/llama-4:free"}),
        (
            {"id": "azure:chat:mini", "config": {"apiHost": "me.openai.azure.com"}},
            {"provider": "azure", "model": "mini", "base_url": "https://me.openai.azure.com/openai/v1"},
        ),
        (
            {"id": "bedrock:openai.gpt-oss-20b-1:0", "config": {"region": "eu-west-1"}},
            {
                "provider": "bedrock",
                "model": "openai.gpt-oss-20b-1:0",
                "base_url": "https://bedrock-mantle.eu-west-1.api.aws/v1",
            },
        ),
        (
            {"id": "openai:m", "config": {"apiBaseUrl": "http://{{env.HOST}}/v1", "apiKey": "{{ env.MY_KEY }}"}},
            {"provider": "openai", "model": "m", "base_url": "http://${HOST}/v1", "api_key_env": "MY_KEY"},
        ),
        (
            "cerebras:llama-4",
            {"base_url": "https://api.cerebras.ai/v1", "api_key_env": "CEREBRAS_API_KEY", "model": "llama-4"},
        ),
    ],
)
def test_chat_provider_is_a_model(tmp_path, provider, model):
    suite = imported(tmp_path, with_prompts("{{q}}", providers=[provider])).suite
    assert list(suite["models"].values()) == [model]


@pytest.mark.parametrize(
    "provider",
    ["openai:image:gpt-image-2", "openai:codex-sdk", "elevenlabs:tts:rachel", "bedrock:amazon.nova-canvas-v1"],
)
def test_provider_without_counterpart_is_listed_and_the_suite_has_no_target(tmp_path, provider):
    found = imported(tmp_path, with_prompts("{{q}}", providers=[provider]))
    assert found.says(f"a provider: `{provider}`")
    assert "target" not in found.suite
    assert any("add a `target`" in remark for remark in found.files.remarks)


def test_key_in_the_config_is_not_copied(tmp_path):
    provider = {"id": OPENAI, "config": {"apiKey": "sk-secret-1234567890"}}
    found = imported(tmp_path, with_prompts("{{q}}", providers=[provider]))
    assert "sk-secret" not in found.files.suite
    assert found.says("a key that stands in the config: set the variable of the environment")


def test_settings_of_a_model_are_sent_and_what_is_not_known_is_listed(tmp_path):
    settings = {
        "temperature": 0.5,
        "seed": 3,
        "tools": "file://tools.json",
        "reasoning": {"effort": "low"},
        "voice": "x",
    }
    found = imported(
        tmp_path, with_prompts("{{q}}", providers=[{"id": OPENAI, "config": settings}]), tools__json='[{"name": "t"}]'
    )
    assert found.suite["target"]["temperature"] == 0.5
    assert found.suite["target"]["extra"] == {"seed": 3, "tools": [{"name": "t"}], "reasoning_effort": "low"}
    assert found.says("`voice` of a provider's config")


def test_settings_in_a_group_of_their_own_are_settings(tmp_path):
    provider = {"id": "google:gemini-3-flash", "config": {"generationConfig": {"temperature": 0, "maxOutputTokens": 9}}}
    found = imported(tmp_path, with_prompts("{{q}}", providers=[provider]))
    assert found.suite["target"] == {"chat": "gemini-3-flash", "prompt": "prompt", "temperature": 0, "max_tokens": 9}
    assert found.files.left_out == ()


@pytest.mark.parametrize("parser", ["json.choices[0].text", "(json, text) => json.choices?.[0].text"])
def test_endpoint_is_an_http_target_with_the_prompt_inside(tmp_path, parser):
    provider = {
        "id": "https",
        "config": {
            "url": "https://example.com/ask",
            "method": "POST",
            "headers": {"Authorization": "Bearer {{env.TOKEN}}"},
            "body": {"message": "{{prompt}}", "user": "{{name}}"},
            "transformResponse": parser,
        },
    }
    found = imported(tmp_path, with_prompts("Answer: {{q}}", providers=[provider]))
    assert found.suite["target"] == {
        "http": {
            "url": "https://example.com/ask",
            "method": "POST",
            "headers": {"Authorization": "Bearer ${TOKEN}"},
            "body": {"message": "Answer: {{input.q}}", "user": "{{input.name}}"},
            "output": "choices.0.text",
        }
    }
    assert found.inputs == [{"q": "why", "name": ""}]


def test_endpoint_whose_reply_is_read_by_code_is_listed(tmp_path):
    provider = {"id": "https://example.com", "config": {"transformResponse": "(json) => json.a.map(f)"}}
    assert imported(tmp_path, with_prompts("{{q}}", providers=[provider])).says("`transformResponse` is code")


def test_endpoint_beside_a_model_is_a_named_variant(tmp_path):
    endpoint = {"id": "https://example.com/ask", "label": "own", "config": {"body": {"q": "{{prompt}}"}}}
    suite = imported(tmp_path, with_prompts("{{q}}", providers=[OPENAI, endpoint])).suite
    assert "target" not in suite
    assert suite["variants"] == {
        "gpt-5-mini": {"chat": "gpt-5-mini", "prompt": "prompt"},
        "own": {"http": {"url": "https://example.com/ask", "body": {"q": "{{input.q}}"}}},
    }


CHAT = '[{"role": "system", "content": "Be brief."}, {"role": "user", "content": "{{q}}"}]'


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("chat__json", CHAT),
        ("chat__jsonl", CHAT),
        ("chat__yaml", "- role: system\n  content: Be brief.\n- role: user\n  content: '{{q}}'\n"),
        ("chat__txt", "- role: system\n  content: Be brief.\n- role: user\n  content: '{{q}}'\n"),
    ],
)
def test_chat_prompt_is_a_list_of_messages(tmp_path, name, text):
    found = imported(tmp_path, with_prompts(f"file://{name.replace('__', '.')}"), **{name: text})
    messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "{{input.q}}"}]
    assert yaml.safe_load(found.files.prompts["prompts/chat.yml"]) == messages


def test_prompts_of_a_file_are_parted_and_globs_are_expanded(tmp_path):
    found = imported(
        tmp_path,
        with_prompts("file://p*.txt", "prompts.csv"),
        p1__txt="one {{q}}\n---\ntwo {{q}}\n",
        p2__txt="three {{q}}",
        prompts__csv="prompt,label\nfour {{q}},last\n",
    )
    assert list(found.files.prompts.values()) == [
        f"{name} {{{{input.q}}}}\n" for name in ("one", "two", "three", "four")
    ]
    assert found.suite["variants"] == {"prompt": ["p1", "p1-2", "p2", "last"]}


def test_loops_and_filters_that_jinja_has_are_a_template(tmp_path):
    text = "{% for item in items %}{{ loop.index }}. {{ item.name | upper }}\n{% endfor %}{{q}}"
    found = imported(
        tmp_path, with_prompts(text, tests=[{"vars": {"q": "why", "items": [{"name": "a"}, {"name": "b"}]}}])
    )
    assert found.suite["prompts"] == {"prompt": "prompts/prompt.j2"}
    jinja2 = pytest.importorskip("jinja2")
    template = jinja2.Environment(undefined=jinja2.StrictUndefined).from_string(
        found.files.prompts["prompts/prompt.j2"]
    )
    assert template.render(input=found.inputs[0]) == "1. A\n2. B\nwhy"


@pytest.mark.parametrize(
    ("prompt", "why"),
    [
        ("{{ q | dump }}", "`{{ q | dump }}` has no counterpart"),
        ("{% if q === 'a' %}x{% endif %}", "has no counterpart"),
        ("{% include 'x' %}", "has no counterpart"),
        ("{{ env.HOME }}", "it reads `env`"),
        ("file://p.js:make", "is code, which is not run"),
        ("file://../p.txt", "not below the folder"),
        ("file://none.txt", "there is no file"),
        ("[{{q}}", None),
        ('[{"role": "user", "content": {{q}}}]', "only after its variables are filled in"),
        ('[{"role": "user", "content": [{"type": "image_url", "image_url": "x"}]}]', "is not a role with a text"),
    ],
)
def test_prompt_without_counterpart_is_listed(tmp_path, prompt, why):
    found = imported(tmp_path, with_prompts(prompt))
    assert ("target" in found.suite) is (why is None)
    assert why is None or found.says(why)


def test_link_that_leads_out_of_the_folder_is_not_followed(tmp_path):
    (tmp_path / "secret.txt").write_text("secret")
    folder = tmp_path / "config"
    folder.mkdir()
    (folder / "p.txt").symlink_to(tmp_path / "secret.txt")
    found = imported(folder, with_prompts("file://p.txt"))
    assert found.files.prompts == {}
    assert found.says("not below the folder of the config")


def test_variable_that_a_test_lacks_is_empty_as_in_promptfoo(tmp_path):
    found = imported(tmp_path, with_prompts("{{q}} {{tone}}", tests=[{"vars": {"q": "a"}}, {"vars": {"tone": "b"}}]))
    assert found.inputs == [{"q": "a", "tone": ""}, {"q": "", "tone": "b"}]


def test_config_without_tests_is_one_sample(tmp_path):
    config = {"prompts": ["Tell a joke."], "providers": [OPENAI]}
    found = imported(tmp_path, config)
    assert found.inputs == [{}]
    assert found.suite["metrics"] == [{"length-within": {"name": "answered", "min": 1}}]
    assert any("`answered`" in remark for remark in found.files.remarks)


def test_variables_may_stand_in_files(tmp_path):
    found = imported(
        tmp_path,
        with_prompts("{{q}}", tests=[{"vars": {"q": "file://q.txt", "data": "file://d.yaml", "each": "file://n*.md"}}]),
        q__txt=" why\n",
        d__yaml="a: [1, 2]\n",
        n1__md="one",
        n2__md="two",
    )
    assert found.inputs == [{"q": "why", "data": '{"a":[1,2]}', "each": name} for name in ("one", "two")]


CSV = (
    "q,__expected,__expected2,__description,__metadata:lang,__config:__expected:threshold\n"
    '2+2,4,"contains-any: four, 4",sum,en,1\n'
    "hello,llm-rubric: It is polite.,similar(0.9): hi,,,\n"
)


def test_tests_may_stand_in_a_table(tmp_path):
    found = imported(tmp_path, with_prompts("{{q}}", tests="file://t.csv"), t__csv=CSV)
    assert found.inputs == [{"q": "2+2"}, {"q": "hello"}]
    first, second = found.files.dataset
    assert (first.id, first.metadata["lang"], first.metadata["equals"]) == ("sum", "en", "4")
    assert list(first.metadata["contains_any"]) == ["four", "4"]
    assert second.metadata["llm_rubric"] == "It is polite."
    assert (second.expected_output, found.says("`__config:__expected:threshold`")) == ("hi", True)
    assert {"cosine-embedding": {"name": "similar", "threshold": 0.9, "where": {"has": ["assert_similar"]}}} in (
        found.suite["metrics"]
    )


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("t__yaml", "- vars: {q: a}\n- vars: {q: b}\n"),
        ("t__json", '[{"vars": {"q": "a"}}, {"vars": {"q": "b"}}]'),
        ("t__jsonl", '{"vars": {"q": "a"}}\n{"vars": {"q": "b"}}\n'),
    ],
)
def test_tests_may_stand_in_files(tmp_path, name, text):
    found = imported(tmp_path, with_prompts("{{q}}", tests=["file://t.*"]), **{name: text})
    assert found.inputs == [{"q": "a"}, {"q": "b"}]


def test_scenarios_cross_their_configs_with_their_tests(tmp_path):
    config = with_prompts("{{q}}")
    del config["tests"]
    config["scenarios"] = [
        {
            "config": [{"vars": {"lang": "French"}}, {"vars": {"lang": "German"}}],
            "tests": [
                {"vars": {"q": "a"}, "assert": [{"type": "contains", "value": "{{lang}}"}]},
                {"vars": {"q": "b"}},
            ],
        }
    ]
    found = imported(tmp_path, config)
    assert found.inputs == [{"lang": lang, "q": q} for lang in ("French", "German") for q in "ab"]
    assert [sample.metadata.get("contains") for sample in found.files.dataset] == ["French", None, "German", None]


def test_options_of_the_evaluation_and_the_grader_are_taken_in(tmp_path):
    config = with_prompts(
        "{{q}}",
        evaluateOptions={"repeat": 3, "maxConcurrency": 2, "delay": 5},
        defaultTest={
            "options": {"provider": {"id": "mistral:mistral-small-latest"}},
            "assert": [{"type": "llm-rubric", "value": "It is polite."}],
        },
    )
    found = imported(tmp_path, config)
    assert (found.suite["repetitions"], found.suite["limits"]) == (3, {"concurrency": 2})
    assert found.suite["models"]["judge"] == {"provider": "mistral", "model": "mistral-small-latest"}
    assert found.files.left_out == ("`delay` of the options of an evaluation, line 11",)


def test_judge_is_the_usual_grader_of_promptfoo_and_that_is_said(tmp_path):
    rubric = {"assert": [{"type": "llm-rubric", "value": "It is polite."}]}
    found = imported(tmp_path, with_prompts("{{q}}", tests=[rubric]))
    assert found.suite["models"]["judge"] == {"provider": "openai", "model": "gpt-5.5"}
    assert any(remark.startswith("`judge` is the usual grader") for remark in found.files.remarks)


def test_config_whose_tests_are_code_is_refused_with_what_was_not_taken_in(tmp_path):
    with pytest.raises(InputError, match=r"No test .* `file://t.py:make` is code, which is not run, line 5"):
        imported(tmp_path, with_prompts("{{q}}", tests="file://t.py:make"))


PROVIDER = """
from greeting import GREETING

def call_api(prompt, options, context):
    if context["vars"]["q"] == "broken":
        return {"error": "no answer"}
    return {"output": f"{GREETING}, {options['config']['name']}: {prompt}"}

async def ask_later(prompt, options, context):
    return {"output": prompt.upper()}
"""


def test_python_functions_are_called_as_promptfoo_calls_them(tmp_path):
    folder = tmp_path / "config"
    folder.mkdir()
    (folder / "greeting.py").write_text("GREETING = 'Hello'\n")
    providers = [
        {"id": "file://provider.py", "label": "now", "config": {"name": "Ada"}},
        {"id": "python:provider.py:ask_later", "label": "later"},
    ]
    config = with_prompts("Say {{q}}", providers=providers, tests=[{"vars": {"q": name}} for name in ("yes", "broken")])
    found = imported(folder, config, provider__py=PROVIDER)
    assert found.suite["variants"] == {
        "now": {"python": "targets:ask_now_prompt"},
        "later": {"python": "targets:ask_later_prompt"},
    }
    found.files.write(tmp_path / "suites" / "made")
    outputs = {
        name: outputs_of(tmp_path / "suites" / "made", target["python"])
        for name, target in found.suite["variants"].items()
    }
    assert outputs == {
        "now": ["Hello, Ada: Say yes", "RuntimeError: no answer"],
        "later": ["SAY YES", "SAY BROKEN"],
    }


def test_echo_answers_with_the_prompt(tmp_path):
    found = imported(tmp_path, with_prompts("Say {{q}}", providers=["echo"]))
    found.files.write(tmp_path / "made")
    assert outputs_of(tmp_path / "made", found.suite["target"]["python"]) == ["Say why"]


def test_command_gets_prompt_options_and_variables_as_arguments(tmp_path):
    script = (
        "import json, sys\nprint(sys.argv[1], json.loads(sys.argv[2])['config'], json.loads(sys.argv[3])['vars'])\n"
    )
    provider = {"id": f"exec: {sys.executable} script.py", "label": "own", "config": {"a": 1}}
    found = imported(tmp_path, with_prompts("Say {{q}}", providers=[provider]), script__py=script)
    found.files.write(tmp_path / "made")
    assert outputs_of(tmp_path / "made", found.suite["target"]["python"]) == ["Say why {'a': 1} {'q': 'why'}"]


@pytest.mark.parametrize(
    ("providers", "variants"),
    [
        (["small", "large"], ["plain / small", "plain / large", "loop / small", "loop / large"]),
        (["small", "echo"], ["plain / small", "loop / small", "plain / echo", "loop / echo"]),
    ],
)
def test_written_suite_runs_at_once(tmp_path, monkeypatch, providers, variants):
    pytest.importorskip("jinja2")
    prompts = [
        {"label": "plain", "raw": "Say {{word}}"},
        {"label": "loop", "raw": "Say {% for letter in letters %}{{letter.is}}{% endfor %}"},
    ]
    models = {
        name: {"id": f"openai:{name}", "config": {"apiBaseUrl": "{{env.CHAT_URL}}"}} for name in ("small", "large")
    }
    tests = [
        {
            "vars": {"word": "yes", "letters": [{"is": "y"}, {"is": 1}]},
            "assert": [{"type": "starts-with", "value": "Say"}],
        }
    ]
    config = {"prompts": prompts, "providers": [models.get(name, name) for name in providers], "tests": tests}
    (tmp_path / "promptfooconfig.yaml").write_text(yaml.safe_dump(config))

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_API_KEY", "not-a-key")
    made = called("import", "promptfooconfig.yaml", "--to", "made")
    assert made.stdout.endswith("Next: deemster check made/suite.yml\n")
    with ModelServer(answer=lambda messages: messages[-1]["content"]) as server:
        monkeypatch.setenv("CHAT_URL", server.url)
        checked = called("check", "made/suite.yml")
        assert checked.exit_code == 0, checked.output
        done = called("run", "made/suite.yml", "--to", "-")
    assert done.exit_code == 0, done.stderr
    experiment = json.loads(done.stdout)
    assert [variant["name"] for variant in experiment["variants"]] == variants


def outputs_of(folder, target):
    """What a target answers to the samples of a suite that was written, or how it fails."""
    ask = import_object(target, called="target", search=folder)
    answers = []
    for sample in dm.Dataset.load(folder / "dataset.yml"):
        try:
            answers.append(ask(dict(sample.input)))
        except RuntimeError as error:
            answers.append(f"RuntimeError: {error}")
    return answers
