// Browsers start no workers from files. The search runs in a hidden frame there, in which what it
// expects of a worker is defined first. Its own code looks for IFrameWorker.
if (location.protocol === "file:") {
  window.IFrameWorker = window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.appendChild(frame);
      this.inner = frame.contentWindow;
      this.inner.document.open();
      this.inner.document.write(`<body><script>(${prepare})()</script>`);
      this.ready = new Promise((resolve) => (this.inner.started = resolve));
      this.inner.document.write(`<script src="${url}" onload="started()"></script></body>`);
      this.inner.document.close();
      addEventListener("message", (event) => {
        if (event.source === this.inner) {
          this.dispatchEvent(new MessageEvent("message", { data: event.data }));
        }
      });
    }

    postMessage(data) {
      const event = () => new this.inner.MessageEvent("message", { data });
      this.ready.then(() => this.inner.dispatchEvent(event()));
    }

    terminate() {
      this.inner.frameElement.remove();
    }
  };

  function prepare() {
    window.postMessage = (data) => parent.postMessage(data, "*");
    window.importScripts = async (...urls) => {
      for (const url of urls) {
        await new Promise((resolve, reject) => {
          const script = document.createElement("script");
          Object.assign(script, { src: url, onload: resolve, onerror: reject });
          document.body.appendChild(script);
        });
      }
    };
  }
}
