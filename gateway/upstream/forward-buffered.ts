import type { Dispatcher } from 'undici';
import type { Transport } from './transport.ts';

/** Sends a request without a body, or with a fully buffered body, over a pooled connection with undici. */
export const forwardBuffered: Transport = (request, headers, response, { pool }, events) => {
  const connection = pool.acquire();
  const { client } = connection;
  let controller: Dispatcher.DispatchController | undefined;
  client.dispatch(
    {
      method: request.method as Dispatcher.HttpMethod,
      path: request.url,
      headers,
      body: response.locals.body ?? null,
      // undici closes a connection after HEAD, in case the server sends a body. The services' Node servers send none.
      reset: false,
    },
    {
      onRequestStart(started) {
        controller = started;
        events.onSending();
      },
      onResponseStart(started, status, replied) {
        // The client needs no interim replies.
        if (status < 200) return;
        if (!events.onHeaders(status, replied)) started.abort(new Error('the reply cannot be forwarded'));
      },
      onResponseData(started, chunk) {
        events.onData();
        if (response.write(chunk)) return;
        started.pause();
        response.once('drain', () => started.resume());
      },
      onResponseEnd() {
        pool.release(connection);
        response.end();
        events.onEnd();
      },
      onResponseError(_started, error) {
        void client.destroy();
        events.onError(error);
      },
    },
  );
  return {
    get isReused() {
      return connection.isReused;
    },
    abort() {
      controller?.abort(new Error('the request has ended'));
      void client.destroy();
    },
  };
};
