// Browsers refuse workers to pages that are opened as files; there the site's search runs in a hidden frame. The name
// of the class is the one by which the search finds its parts when it runs so.
"use strict";

if (location.protocol === "file:") {
  window.IFrameWorker = class extends EventTarget {
    constructor(url) {
      super();
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      document.body.append(this.frame);
      const inner = this.frame.contentWindow;
      inner.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      inner.importScripts = (...urls) =>
        urls.reduce((before, one) => before.then(() => load(inner.document, one)), Promise.resolve());
      this.loaded = inner.importScripts(url);
    }

    postMessage(data) {
      this.loaded.then(() => this.frame.contentWindow.dispatchEvent(new MessageEvent("message", { data })));
    }

    terminate() {
      this.frame.remove();
    }
  };
  window.Worker = window.IFrameWorker;

  function load(page, url) {
    return new Promise((resolve, reject) => {
      const script = page.createElement("script");
      script.src = url;
      script.onload = resolve;
      script.onerror = reject;
      page.body.append(script);
    });
  }
}
