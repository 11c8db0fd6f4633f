"""Zero-shot models: a tiny random CLIP, embeddings made by hand, and the formulas of MCM and NegLabel."""

from __future__ import annotations

import hashlib
import re

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="pip install '.[torch]'")

from loaders.harness import evaluate, load_model, zero_shot, zero_shot_arrays  # noqa: E402 - after importorskip
from loaders.harness.data.arrays import Arrays  # noqa: E402 - after importorskip
from loaders.harness.detectors import get_detector  # noqa: E402 - after importorskip
from loaders.harness.models.vision_language import id_classes  # noqa: E402 - after importorskip
from loaders.harness.results.results import Results  # noqa: E402 - after importorskip
from tests.raising import mentions, raises  # noqa: E402 - after importorskip
from tests.wordnet_splits.small_lexicon import write_lexicon  # noqa: E402 - after importorskip
from wordnet_splits.base.errors import DataError, UnknownNameError  # noqa: E402 - after importorskip
from wordnet_splits.base.lazy import MissingPackageError  # noqa: E402 - after importorskip
from wordnet_splits.benchmark.resolve import load_manifest  # noqa: E402 - after importorskip

WIDTH = 12
DIGITS = ["zero", "one", "two", "three", "four", "five"]


def encode_text(sentences):
    """Embeddings that depend on each sentence alone."""
    rows = [np.random.default_rng(list(sentence.encode())).normal(size=WIDTH) for sentence in sentences]
    return torch.tensor(np.array(rows), dtype=torch.float32)


@pytest.fixture
def encoder():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(192, WIDTH))


@pytest.fixture(scope="module")
def clip_folder(tmp_path_factory):
    """A random CLIP of two layers, with a tokenizer of whole words."""
    transformers = pytest.importorskip("transformers")
    tokenizers = pytest.importorskip("tokenizers")
    folder = tmp_path_factory.mktemp("clip")
    words = ["[UNK]", "a", "photo", "of", ".", *DIGITS, "six", "seven", "moonbeam", "start", "end"]
    vocabulary = {word: n for n, word in enumerate(words)}
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    tokenizer.post_processor = tokenizers.processors.TemplateProcessing(
        "start $A end", special_tokens=[(name, vocabulary[name]) for name in ("start", "end")]
    )
    transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="end", eos_token="end", model_max_length=16
    ).save_pretrained(folder)
    shape = {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2}
    ids = {"vocab_size": len(words), "eos_token_id": vocabulary["end"], "bos_token_id": vocabulary["start"]}
    torch.manual_seed(0)
    config = transformers.CLIPConfig(
        text_config={**shape, **ids, "pad_token_id": vocabulary["end"], "max_position_embeddings": 16},
        vision_config={**shape, "image_size": 16, "patch_size": 8},
        projection_dim=WIDTH,
    )
    transformers.CLIPModel(config).save_pretrained(folder)
    transformers.CLIPImageProcessor(
        size={"shortest_edge": 16}, crop_size={"height": 16, "width": 16}
    ).save_pretrained(folder)
    return folder


def cosine(a, b):
    return float(np.dot(a, b) / (np.linalg.norm(a) * np.linalg.norm(b)))


def test_logits_are_100_times_cosine_similarities(encoder):
    module = zero_shot(encoder, encode_text, DIGITS)
    images = torch.randn(5, 3, 8, 8)
    features = encoder(images).detach().numpy()
    text = encode_text([f"a photo of a {name}." for name in DIGITS]).numpy()
    expected = [[100 * cosine(row, name) for name in text] for row in features]
    np.testing.assert_allclose(module(images).detach(), expected, rtol=1e-4, atol=1e-4)


def test_templates_are_averaged_at_length_one(encoder):
    templates = ["a photo of a {}.", "a drawing of a {}."]
    module = zero_shot(encoder, encode_text, DIGITS, templates=templates)
    parts = [encode_text([t.replace("{}", name) for name in DIGITS]).numpy() for t in templates]
    mean = sum(rows / np.linalg.norm(rows, axis=1, keepdims=True) for rows in parts)
    expected = 100 * mean / np.linalg.norm(mean, axis=1, keepdims=True)
    np.testing.assert_allclose(module.head.weight, expected, rtol=1e-5)


def formulas(images, names, negatives, *, groups, T):
    """MCM (eq. 1) and NegLabel (eq. 6-8) in double precision, image by image."""
    mcm, neglabel = [], []
    for image in images.astype(np.float64):
        similarities = np.array([cosine(image, name) for name in names])
        mcm.append(np.exp(similarities).max() / np.exp(similarities).sum())
        size = len(negatives) // groups
        inside = np.exp(100 * similarities / T).sum()
        shares = []
        for group in range(groups):
            words = negatives[group * size : (group + 1) * size]
            outside = sum(np.exp(100 * cosine(image, word) / T) for word in words)
            shares.append(inside / (inside + outside))
        neglabel.append(np.mean(shares))
    return np.array(mcm), np.array(neglabel)


def scores(name, arrays, **params):
    detector = get_detector(name, **params).detector
    return detector.score(None, Arrays(arrays))


@pytest.mark.parametrize(("groups", "temperature"), [(1, 1.0), (4, 1.0), (5, 20.0)])
def test_mcm_and_neglabel_are_their_formulas(groups, temperature):
    rng = np.random.default_rng(groups)
    images, names, negatives = (rng.normal(size=(n, WIDTH)) for n in (50, 6, 23))
    arrays = zero_shot_arrays(images, names, negatives, groups=groups, T=temperature)
    mcm, neglabel = formulas(images, names, negatives, groups=groups, T=temperature)
    odds = scores("mcm", arrays) / 100  # T (log(p/(1 - p)) + log m), T = 100 here
    np.testing.assert_allclose(odds, np.log(mcm / (1 - mcm)) + np.log(5), rtol=1e-3, atol=1e-5)
    odds = scores("neglabel", arrays, groups=groups, T=temperature)
    inside = neglabel < 1 - 1e-9
    np.testing.assert_allclose(
        odds[inside], np.log(neglabel[inside] / (1 - neglabel[inside])), rtol=1e-3, atol=1e-4
    )
    assert np.isfinite(odds).all()
    assert len(np.unique(odds)) == len(odds)  # the mean is 1 for several, the odds differ


@pytest.mark.parametrize("tau", [0.01, 1.0, 100.0])
def test_mcm_ranks_as_pytorch_oods(tau):
    detector = pytest.importorskip("pytorch_ood.detector", reason="pytorch-ood is not installed")
    rng = np.random.default_rng(0)
    images, names = (rng.normal(size=(n, WIDTH)).astype(np.float32) for n in (200, 6))
    reference = detector.MCM(None, torch.from_numpy(names).double(), temperature=tau)
    unit = images / np.linalg.norm(images.astype(np.float64), axis=1, keepdims=True)
    confidences = -reference.predict_features(torch.from_numpy(unit)).numpy()
    ours = scores("mcm", zero_shot_arrays(images, names), tau=tau)
    distinct = np.abs(np.subtract.outer(confidences, confidences)) > 1e-6
    order = np.subtract.outer(ours, ours) > 0
    assert (order == (np.subtract.outer(confidences, confidences) > 0))[distinct].all()
    assert distinct.mean() > 0.5


def test_the_probe_gives_what_arrays_give(encoder):
    words = [f"word {n}" for n in range(11)]
    module = zero_shot(encoder, encode_text, DIGITS, negatives=words)
    model = load_model(module)
    images = torch.randn(6, 3, 8, 8)
    model.prepare(images)
    from loaders.harness.probes import get_probe

    negatives = encode_text([f"a photo of a {word}." for word in module.words]).numpy()
    text = encode_text([f"a photo of a {name}." for name in DIGITS]).numpy()
    arrays = zero_shot_arrays(encoder(images).detach().numpy(), text, negatives, groups=3)
    with model.batch(images):
        given = get_probe("negatives", groups=3)(model, images)["log_sums"]
    np.testing.assert_allclose(given.detach(), arrays["negatives[groups=3,T=1]/log_sums"], rtol=1e-4)
    assert sorted(module.words) == sorted(words)
    again = zero_shot(encoder, encode_text, DIGITS, negatives=words[::-1])
    assert again.words == module.words


def test_clip_from_a_folder_on_a_benchmark(clip_folder):
    options = {"names": "digits", "negatives": ["six", "seven", "moonbeam", "photo"]}
    results = evaluate(
        f"clip:{clip_folder}",
        "digits",
        detectors="msp,mls,mcm,neglabel[groups=2],knn[k=5],vim,react,energy",
        options=options,
        device="cpu",
    )
    assert {row["detector"] for row in results.rows()} >= {"mcm", "neglabel[groups=2]", "vim"}
    assert "4 negative words" in str(results)


def test_a_note_says_that_names_of_a_group_were_told(encoder):
    module = zero_shot(encoder, encode_text, "digits", negatives=["Six", "moonbeam"])
    results = evaluate(module, "digits", detectors="neglabel[groups=1]", device="cpu")
    told, named = (note for note in results.about.notes if "negative words" in note)
    assert told.endswith("it was told 2 negative words (SHA-256 " + told[-13:])
    assert named.endswith("digits-6-9: the negative words are names of 1 of the 4 classes")


def test_other_models_are_refused_by_name(encoder):
    model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(192, 6))
    with raises(DataError, where="Sequential"):
        evaluate(model, "digits", detectors="mcm", device="cpu")
    with raises(DataError, where="ZeroShot"):
        evaluate(zero_shot(encoder, encode_text, "digits"), "digits", detectors="neglabel", device="cpu")


def test_too_many_groups_are_refused(encoder):
    module = zero_shot(encoder, encode_text, "digits", negatives=["six", "moonbeam"])
    with raises(DataError, naming=("2", "100")):
        evaluate(module, "digits", detectors="neglabel", device="cpu")
    rows = np.ones((3, 4))
    with raises(DataError, naming=("3", "4")):
        zero_shot_arrays(rows, rows, rows, groups=4)
    with pytest.raises(DataError):
        zero_shot_arrays(rows, np.ones((2, 5)))


@pytest.mark.parametrize(
    "arguments",
    [
        {"names": ["dog"], "templates": ["a photo"]},
        {"names": ["dog"], "templates": []},
    ],
)
def test_bad_names_and_templates(encoder, arguments):
    with pytest.raises(DataError):
        zero_shot(encoder, encode_text, **arguments)


@pytest.mark.parametrize(
    "names",
    [
        [],
        ["dog", "dog"],
        ["Cardigan", "cat", "cardigan"],
        ["maple_tree", "maple tree"],
        ["fox", "fox "],
        ["", "fox"],
        [0, 1],
    ],
)
def test_classes_without_a_prompt_of_their_own_are_refused(encoder, names):
    with pytest.raises(DataError) as refused:
        zero_shot(encoder, encode_text, names)
    assert refused.value.where == "names"


@pytest.mark.parametrize("benchmark", ["digits", "openood-cifar100", "openood-imagenet1k"])
def test_id_classes_have_distinct_names(encoder, benchmark):
    classes, names = id_classes(benchmark)
    assert len({name.casefold() for name in names}) == len(names)
    module = zero_shot(encoder, encode_text, benchmark)
    assert (module.classes, module.names) == (tuple(classes), tuple(names))


def test_names_are_replaced_by_the_callers(encoder, tmp_path):
    (tmp_path / "names.tsv").write_text("class_id\tname\n4\tquartet\n")
    (tmp_path / "all.txt").write_text("\n".join(DIGITS[::-1]) + "\n")
    by_rule = id_classes("digits")[1]
    for rename, expected in (
        ({"4": "quartet"}, [*by_rule[:4], "quartet", by_rule[5]]),
        (tmp_path / "names.tsv", [*by_rule[:4], "quartet", by_rule[5]]),
        (tmp_path / "all.txt", DIGITS[::-1]),
    ):
        assert zero_shot(encoder, encode_text, "digits", rename=rename).names == tuple(expected)


@pytest.mark.parametrize(
    "act", [id_classes, lambda name, **given: zero_shot(None, encode_text, name, **given)]
)
def test_id_classes_that_share_a_name_are_refused_and_named(act):
    with raises(DataError, where="openood-imagenet1k", naming=("n02012849", "n03126707")) as refused:
        act("openood-imagenet1k", rename={"n02012849": "crane", "n03126707": "Crane"})
    assert len(re.findall(r"n\d{8}", refused.value.what)) == 2
    with raises(DataError, where="digits"):
        act("digits", rename={"0": "one"})
    with raises(UnknownNameError, naming="x"):
        act("digits", rename={"x": "one"})


def test_only_classes_of_a_benchmark_are_renamed(encoder):
    with raises(DataError, where="names"):
        zero_shot(encoder, encode_text, DIGITS, rename={"0": "nought"})


def test_a_text_encoder_of_another_shape(encoder):
    with raises(DataError, naming="12"):
        zero_shot(encoder, lambda sentences: encode_text(sentences[:1]), ["dog", "cat"])


@pytest.mark.parametrize("value", [0.0, float("nan")])
def test_text_embeddings_without_a_direction_are_refused(encoder, value):
    with pytest.raises(DataError):
        zero_shot(encoder, lambda sentences: torch.full((len(sentences), WIDTH), value), DIGITS)


def test_negatives_may_be_the_file_of_a_list_and_a_template_one_text(encoder, tmp_path):
    (tmp_path / "words.tsv").write_text("# source\nkind\tword\nnoun\tsix\nadj\tround\n")
    model = zero_shot(encoder, encode_text, DIGITS, negatives=tmp_path / "words.tsv", templates="a {}")
    assert sorted(model.words) == ["round", "six"]
    assert torch.equal(
        model.head.weight, zero_shot(encoder, encode_text, DIGITS, templates=["a {}"]).head.weight
    )


def test_names_of_another_benchmark_are_refused(encoder):
    module = zero_shot(encoder, encode_text, "openood-cifar10")
    with raises(DataError, where="ZeroShot"):
        evaluate(module, "digits", detectors="msp", device="cpu")


def test_options_of_clip(clip_folder, tmp_path):
    name = f"clip:{clip_folder}"
    with pytest.raises(DataError):
        load_model(name)
    with raises(UnknownNameError, naming="negativs"):
        load_model(name, options={"names": DIGITS, "negativs": "x"})
    with pytest.raises(DataError):
        load_model(name, options={"names": DIGITS}, weights="x.pt")
    with pytest.raises(DataError):
        load_model(f"clip:{tmp_path}", options={"names": DIGITS})
    words = tmp_path / "words.txt"
    words.write_text("# words\nsix\n\nmoonbeam\n")
    model = load_model(name, options={"names": DIGITS, "negatives": words})
    assert sorted(model.words) == ["moonbeam", "six"]


def test_a_clip_model_is_no_image_classifier(clip_folder):
    with pytest.raises(DataError):
        load_model(f"hf:{clip_folder}")


def test_adjectives_have_a_sentence_of_their_own(encoder, tmp_path):
    (tmp_path / "words.tsv").write_text("word\tkind\ngolden\tadjective\nhouse\tnoun\ngolden\tnoun\n")
    module = zero_shot(encoder, encode_text, DIGITS, negatives=tmp_path / "words.tsv", templates="one {}")
    sentences = {"golden": "This is a golden photo", "house": "one house"}
    expected = encode_text([sentences[word] for word in module.words])
    np.testing.assert_allclose(
        module.negatives, torch.nn.functional.normalize(expected, dim=1), rtol=1e-5, atol=1e-7
    )


def test_open_clip_is_asked_for(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "open_clip", None)
    with raises(MissingPackageError, where="open_clip:ViT-B-16/openai"):
        load_model("open_clip:ViT-B-16/openai", options={"names": DIGITS})


def test_a_lazy_module_is_refused():
    module = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.LazyLinear(6))
    with raises(DataError, where="Sequential"):
        evaluate(module, "digits", detectors="msp", device="cpu")


def test_the_command_gives_a_zero_shot_model_the_names_of_the_benchmark(
    clip_folder, tmp_path, capsys, monkeypatch
):
    from loaders.harness.cli.main import app
    from wordnet_splits.base.terminal.runner import run

    monkeypatch.chdir(tmp_path)
    (tmp_path / "words.txt").write_text("six\nmoonbeam\n")
    words = [
        "run",
        "--benchmark",
        "digits",
        "--detectors",
        "msp,neglabel[groups=2]",
        "--negatives",
        "words.txt",
    ]
    (tmp_path / "names.txt").write_text("\n".join(DIGITS) + "\n")
    clip = ["--model", f"clip:{clip_folder}", "--template", "a photo of {}.", "--names", "names.txt"]
    assert run(app, [*words, *clip, "--out", "results"], "unknown-eval") == 0
    assert "names of 1 of the 4 classes" in " ".join("".join(capsys.readouterr()).split())
    assert run(app, [*words, "--model", "timm:resnet18"], "unknown-eval") == 2
    assert mentions(capsys.readouterr().err, "--negatives", "--template")
    assert run(app, [*words, *clip, "--model", "timm:resnet18"], "unknown-eval") == 2
    assert "evaluate them one by one" in capsys.readouterr().err


@pytest.mark.extensions("loaders.harness.comparison")
def test_results_record_the_prompts_of_the_classes_in_any_language(clip_folder, tmp_path, capsys):
    pytest.importorskip("wn")
    from loaders.harness.cli.main import app
    from loaders.harness.comparison import compare
    from wordnet_splits.base.terminal.runner import run

    wnids = [wnids[0] for _, _, wnids in load_manifest("digits").id_classes()]
    french = ["zéro", "un", "deux", "trois", "quatre", "cinq"]
    entries = [
        f'<LexicalEntry id="e{n}"><Lemma writtenForm="{word}" partOfSpeech="n"/>'
        f'<Sense id="s{n}" synset="omw-fr-{wnids[n][1:]}-n"/></LexicalEntry>'
        for n, word in enumerate(french)
    ]
    synsets = [f'<Synset id="omw-fr-{wnid[1:]}-n" ili="" partOfSpeech="n"/>' for wnid in wnids]
    about = {"name": "few", "language": "fr", "version": "1"}
    path = write_lexicon(tmp_path / "fr.xml", "\n".join(entries), "\n".join(synsets), **about)
    words = ["run", "--benchmark", "digits", "--detectors", "msp", "--model", f"clip:{clip_folder}"]
    runs = {"english": ((), DIGITS), "french": (("--language", str(path), "--template", "photo {}"), french)}
    held = []
    for name, (options, names) in runs.items():
        assert run(app, [*words, *options, "--out", str(tmp_path / name)], "unknown-eval") == 0
        held.append(Results.read(tmp_path / name))
        template = "photo {}" if options else "a photo of a {}."
        lines = "\n".join(template.replace("{}", word) for word in names).encode()
        assert held[-1].about.runs[0].prompts == hashlib.sha256(lines).hexdigest()[:12]
    digests = [result.about.runs[0].prompts for result in held]
    assert any(mentions(note, *digests) for note in compare(held, bootstrap=0).notes)
    assert not any(mentions(note, digests[0]) for note in compare(held[:1], bootstrap=0).notes)
    assert run(app, [*words[:5], "--language", "fr", "--model", "timm:resnet18"], "unknown-eval") == 2
    assert mentions(capsys.readouterr().err, "--language")
