"""The programs of the newest version of SINGA's example folder.

The texts that are changed stand here because the programs say in their source how long they run;
the programs themselves are read from a checkout of SINGA.
"""

from __future__ import annotations

from typing import Any

from script import Changes, Script

TRAINING = r"Training loss = ([\d.]+)"
LOST = r"training loss =\s+([\d.]+)"
MNIST = "cnn mnist -m 5 -l 0.02"
RANKS = 2
FEW: Changes = {"batchsize = 10000": "batchsize = 64", "num_batches=5": "num_batches=1"}
BRIEF: Changes = {"niters = 100": "niters = 2", "batch_size = 32": "batch_size = 2"}
FIVE: Changes = {"niters = 100": "niters = 5"}
SIX_EPOCHS: Changes = {"max_epoch = 10": "max_epoch = 6"}
#: Of a ResNet-50, and pictures of 224 x 224.
TWO_STEPS: Changes = {
    **FEW,
    "max_epoch = 5": "max_epoch = 1",
    "batch_size = 32": "batch_size = 2",
    "test_x.shape[0] // batch_size": "1",
    "train_x.shape[0] // batch_size": "2",
}
MODEL: Changes = {
    "from resnet import": "from model.resnet import",
    "= model(tx)": "= model.forward(tx)",
}
NO_RESNET = (
    "imports `resnet`, which is `model/resnet.py`, and calls the model with pictures alone, which "
    "means a training step: `model.forward(tx)`"
)
FEW_ITERATIONS: Changes = {
    "    iterations = 1000000": "    iterations = 201",
    "    interval = 1000": "    interval = 50",
}
PLAIN: Changes = {"(tx, ty, 'fp32'": "(tx, ty, 'plain'"}
NOT_PLAIN = (
    "it passes 'fp32', of which its model knows nothing, so that nothing is learned: pass 'plain'"
)
FLOAT: Changes = {"np.float)": "np.float64)", "np.float:": "np.float64:"}
NO_FLOAT = "it names `np.float`, which NumPy has no more since 1.24: `np.float64`"
TOKENIZER = "a download: `transformers` fetches its tokenizer"


def _training(path: str, arguments: str, *data: str, **more: Any) -> Script:
    return Script(path, arguments, data, **{"loss": TRAINING, **more})


def _tables(path: str, **more: Any) -> Script:
    """Points on both sides of a line, which two programs have with changes of names."""
    return Script(path, "-m 301", **{"loss": LOST, "falls": 0.7, **more})


def _unlearned(path: str) -> Script:
    return _tables(path, mended=PLAIN, wrong=NOT_PLAIN)


def _by_mpi(path: str, arguments: str, *data: str, **more: Any) -> Script:
    """Training of which each rank prints, or only the first."""
    packages = ("mpi4py", *more.pop("packages", ()))
    return _training(path, arguments, *data, ranks=RANKS, packages=packages, **more)


def _timed_resnet(path: str) -> Script:
    """Steps of a ResNet-50 that are timed."""
    return _by_mpi(
        path,
        "",
        paths=("cnn",),
        shorter={"niters = 100": "niters = 2", "batch_size = 32": "batch_size = 2"},
        mended={**MODEL, "= resnet50()": "= resnet50(num_classes=1000)"},
        wrong=f"it {NO_RESNET}; and draws labels from 1000 for a network of 10 classes: "
        "`resnet50(num_classes=1000)`",
        loss="",
        prints="Throughput = ",
        packages=("tqdm",),
    )


def _needing(what: str, *paths: str) -> list[Script]:
    return [Script(path, needs=what) for path in paths]


CONVOLUTION = [
    _training("cnn/train_cnn.py", MNIST, "mnist", falls=0.7),
    Script("cnn/benchmark.py", shorter=BRIEF, prints="Throughput = ", packages=("tqdm",)),
    _by_mpi("cnn/train_mpi.py", MNIST, "mnist", falls=0.7),
    _training("cnn/train_multiprocess.py", f"{MNIST} -w {RANKS}", "mnist", falls=0.7),
    _training("cnn/autograd/mnist_cnn.py", "", "mnist", falls=0.7, shorter=SIX_EPOCHS),
    Script(
        "cnn/autograd/resnet_cifar10.py",
        data=("cifar10",),
        paths=("cnn",),
        shorter=TWO_STEPS,
        mended=MODEL,
        wrong=f"it {NO_RESNET}",
        prints="Evaluation accuracy",
    ),
    Script(
        "cnn/autograd/xceptionnet.py",
        shorter={"niters = 20": "niters = 2", "batch_size = 16": "batch_size = 1"},
        prints="2/2 [",
        packages=("tqdm",),
    ),
    Script(
        "cnn/autograd/cifar10_multiprocess.py",
        str(RANKS),
        ("cifar10",),
        ("cnn",),
        others={"cnn/autograd/resnet_cifar10.py": {**TWO_STEPS, **MODEL}},
        wrong=f"`resnet_cifar10` {NO_RESNET}",
        prints="Evaluation accuracy",
    ),
    _training("cnn/autograd/mnist_multiprocess.py", str(RANKS), "mnist"),
    _training("cnn/autograd/sparsification_mnist.py", str(RANKS), "mnist"),
    _by_mpi("cnn/autograd/mnist_dist.py", "", "mnist"),
    _timed_resnet("cnn/autograd/resnet_dist.py"),
    Script(
        "cifar_distributed_cnn/train_cnn.py",
        "cnn mnist -m 1",
        ("mnist",),
        shorter=FIVE,
        prints="Throughput = ",
    ),
    Script(
        "cifar_distributed_cnn/benchmark.py",
        shorter=BRIEF,
        prints="Throughput = ",
        packages=("tqdm",),
    ),
    _by_mpi(
        "cifar_distributed_cnn/train_mpi.py",
        "cnn mnist -m 1 -d half",
        "mnist",
        others={"cifar_distributed_cnn/train_cnn.py": FIVE},
        loss="",
        prints="Throughput = ",
    ),
    Script(
        "cifar_distributed_cnn/train_multiprocess.py",
        f"cnn mnist -m 1 -d sparseThreshold -w {RANKS}",
        ("mnist",),
        others={"cifar_distributed_cnn/train_cnn.py": FIVE},
        prints="Throughput = ",
    ),
    _training("cnn_ms/train_cnn.py", MNIST, "mnist", falls=0.7),
    _by_mpi("cnn_ms/train_mpi.py", f"{MNIST} -d partialUpdate -g", "mnist", falls=0.7),
    _training(
        "cnn_ms/train_multiprocess.py", f"{MNIST} -d sparseTopK -w {RANKS}", "mnist", falls=0.7
    ),
    _training("cnn_ms/autograd/mnist_multiprocess.py", str(RANKS), "mnist"),
    _training("cnn_ms/autograd/mnist_cnn.py", "", "mnist", falls=0.7, shorter=SIX_EPOCHS),
    Script(
        "cnn_ms/train_ms_model.py",
        needs="a function `run`, which neither it nor a module that it imports defines",
    ),
    _unlearned("cnn_ms/msmlp/model.py"),
    _tables("cnn_ms/msmlp/native.py"),
    _training("largedataset_cnn/train_largedata.py", "cnn --epoch 3 --bs 8", "folders"),
    Script(
        "largedataset_cnn/process_data.py",
        data=("folders",),
        cuda=False,
        prints="(5, 3, 299, 299)",
    ),
    _by_mpi(
        "largedataset_cnn/train_mpi.py",
        "cnn --epoch 6 --bs 4 --op sparseTopK --spars 0.5",
        "folders",
        falls=0.7,
    ),
    _by_mpi("largedataset_cnn/autograd/mnist_dist.py", "", "mnist"),
    Script(
        "largedataset_cnn/autograd/cifar10_multiprocess.py",
        str(RANKS),
        ("cifar10",),
        ("cnn", "cnn/autograd"),
        others={"cnn/autograd/resnet_cifar10.py": {**TWO_STEPS, **MODEL}},
        wrong="it imports `resnet_cifar10`, which is that of `cnn/autograd`, and that one "
        f"{NO_RESNET}",
        prints="Evaluation accuracy",
    ),
]

OTHERS = [
    _unlearned("mlp/model.py"),
    _tables("mlp/native.py"),
    Script(
        "gan/vanilla.py",
        "mnist.pkl.gz",
        ("mnist_pickle",),
        shorter=FEW_ITERATIONS,
        others={"gan/model/gan_mlp.py": {"        self.optimizer(loss)\n": ""}},
        wrong="`train_one_batch_dis` of its model goes through `backward(loss)`, and then calls "
        "the optimizer with the same loss, which would go backward a second time through weights "
        "that have changed: leave out `self.optimizer(loss)`",
        loss=r"D_LOSS: ([\d.]+)",
        falls=0.7,
        packages=("matplotlib",),
    ),
    Script(
        "gan/lsgan.py",
        "mnist.pkl.gz",
        ("mnist_pickle",),
        shorter=FEW_ITERATIONS,
        loss=r"D_LOSS: ([\d.]+)",
        falls=0.7,
        packages=("matplotlib",),
    ),
    Script(
        "rbm/train.py",
        "{data}/mnist.pkl.gz",
        ("mnist_pickle",),
        shorter={"num_epoch=10": "num_epoch=3"},
        loss=r"training erroraverage = ([\d.]+)",
        cuda=False,
    ),
    Script(
        "rnn/char_rnn.py",
        "{data}/text.txt -m 3 -l 16 -b 16 -d 32",
        ("text",),
        typed="n\n" * 3,
        mended={
            "if labels:": "if labels is not None:",
            "softmax_cross_entropy(y, labels)[0]": "softmax_cross_entropy(y, labels)",
        },
        wrong="it asks whether a tensor is true, and takes the first element of a loss twice, "
        "which NumPy's rules refuse: `labels is not None`, and one `[0]`",
        loss=r"train loss is ([\d.]+)",
        falls=0.98,
        packages=("tqdm",),
    ),
    Script(
        "rnn/imdb_train.py",
        "-b 16 -m 3",
        ("reviews",),
        loss=r"loss \[([\d.]+)\]",
        falls=0.98,
        packages=("pandas", "nltk", "gensim", "bs4"),
    ),
    Script("rnn/imdb_data.py", needs="a download: films' reviews, and vectors of words"),
    Script(
        "trans/train.py",
        "--max-epoch 4 --batch-size 8 --d_model 16 --n_head 2 --dim_feedforward 32 --n_layers 1 "
        "--lr 0.05",
        ("sentences",),
        loss=r"avg loss: \[([\d.]+)\]",
        falls=0.7,
        cuda=False,
        packages=("matplotlib",),
    ),
    Script(
        "qabot/qabot_train.py",
        "-m 3 -b 10",
        ("questions",),
        shorter={"random.sample(train_raw, 2000)": "random.sample(train_raw, 8)"},
        loss=r"loss:  \[([\d.]+)\]",
        falls=0.98,
        packages=("tqdm",),
    ),
    _training(
        "singa_peft/examples/train.py",
        "mlp mnist linear_lora -m 2 -dir {data}/mnist",
        "mnist",
        paths=("singa_peft", "singa_peft/src"),
        mended={"args.precision": "'float32'"},
        wrong="it reads `args.precision`, of which its parser knows nothing: 'float32'",
        cuda=False,
    ),
    Script(
        "singa_peft/examples/test.py",
        paths=("singa_peft", "singa_peft/src"),
        loss=LOST,
        cuda=False,
    ),
    _timed_resnet("singa_peft/examples/autograd/resnet_dist.py"),
    *_needing(
        "a second program beside it, and tables of a bank",
        "hfl/src/client.py",
        "hfl/src/server.py",
    ),
    Script("model_selection/", needs="PyTorch and PostgreSQL"),
    Script("singa_easy/", needs="the services of Rafiki"),
]

_OF_1000 = (
    *("densenet121", "mobilenet", "resnet18", "shufflenetv1", "shufflenetv2"),
    *("squeezenet", "vgg16", "vgg19"),
)
ZOO = [
    *(Script(f"onnx/{name}.py", data=("zoo",), prints="probability=") for name in _OF_1000),
    Script("onnx/arcface.py", data=("zoo",), prints="Similarity = "),
    Script("onnx/tiny_yolov2.py", data=("zoo",), prints="postprocessing"),
    Script(
        "onnx/superresolution.py",
        data=("zoo",),
        prints="postprocessing",
        packages=("resizeimage",),
    ),
    Script(
        "onnx/fer_emotion.py",
        data=("zoo",),
        mended={"Image.ANTIALIAS": "Image.LANCZOS"},
        wrong="it names `Image.ANTIALIAS`, which Pillow has no more since 10: `Image.LANCZOS`",
        prints="probability=",
    ),
    Script(
        "onnx/training/train.py",
        "--epoch 1 --bs 4",
        ("zoo", "cifar10"),
        ("cnn", "onnx"),
        others={"cnn/data/cifar10.py": FEW},
        prints="Evaluation accuracy",
        packages=("tqdm",),
    ),
    *_needing("a download: a vocabulary of words", "onnx/bert/bert-squad.py"),
    *_needing(TOKENIZER, "onnx/gpt2/gpt2.py", "onnx/ro_bert_a/ro_bert_a.py"),
]


def _medical(name: str, arguments: str, data: str, **more: Any) -> Script:
    return _training(
        f"healthcare/application/{name}.py", arguments, data, **{"cuda": False, **more}
    )


MEDICINE = [
    _medical(
        "Candidiasis_Disease/train",
        "candidiasisnet candidiasis -m 3 -dir {data}",
        "tables",
        mended={
            "def run(": "from healthcare.application.Cerebrovascular_Disease.train import "
            "accuracy\n\n\ndef run("
        },
        wrong="it calls `accuracy` without defining it: take that of another application",
    ),
    _medical(
        "Cerebrovascular_Disease/train",
        "cerebrovascularnet cerebrovascular -m 3 -dir {data}",
        "tables",
    ),
    _medical(
        "Cardiovascular_Disease/train", "cardionet -m 3 -l 0.01 -dir {data}/cardio.csv", "tables"
    ),
    _medical("Kidney_Disease/train", "kidneynet -m 3 -l 0.05 -dir {data}/kidney", "tables"),
    _medical(
        "Malaria_Disease/train", "malarianet malaria -m 3 -b 8 -dir {data}/malaria", "folders"
    ),
    _medical("Malaria_Disease/train_cnn", "cnn malaria -m 3 -b 8 -dir {data}/malaria", "folders"),
    _medical(
        "Diabetic_Disease/Diabetic_Retinopathy_Classification/train",
        "cnn diaret -m 3 -b 8 -dir {data}/diaret",
        "folders",
    ),
    _medical(
        "Hematologic_Disease/train",
        "hematologicnet -m 3 -dir {data}/bloodmnist",
        "folders",
        others={"healthcare/data/bloodmnist.py": FLOAT},
        wrong=NO_FLOAT,
    ),
    _medical(
        "Thyroid_Eye_Disease/train",
        "tedctnet -m 3 -b 16 -dir {data}/cifar-10-batches-py",
        "cifar10",
        others={"healthcare/data/cifar10.py": FEW},
        mended={"create_backbone(": "create_cnn_model("},
        wrong="it calls `create_backbone`, which is `create_cnn_model`",
        falls=0.95,
    ),
    *_needing(
        "a download: `ucimlrepo` fetches its table",
        "healthcare/application/Diabetic_Disease/Diabetic_Readmission_Prediction/train.py",
    ),
    _unlearned("healthcare/models/kidney_net.py"),
    _unlearned("healthcare/models/diabetic_net.py"),
    _training(
        "demos/Classification/BloodMnist/ClassDemo.py",
        "",
        "folders",
        shorter={"max_epoch = 100": "max_epoch = 3", "batch_size = 256": "batch_size = 12"},
        others={"demos/Classification/BloodMnist/transforms.py": FLOAT},
        wrong=NO_FLOAT,
        cuda=False,
        packages=("tqdm",),
    ),
]

SCRIPTS = [*CONVOLUTION, *OTHERS, *ZOO, *MEDICINE]
