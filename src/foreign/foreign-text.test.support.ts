/** Set-up of the unit tests, which have no web workers: foreign text is read over a channel in the same thread. */
import * as Comlink from 'comlink';
import { startForeignTextWith } from './foreign-text';

startForeignTextWith(() => {
  const { port1, port2 } = new MessageChannel();
  // most tests read none: what reads it is loaded by the first that does
  void import('./thread').then((thread) => Comlink.expose(thread.foreignTextThread(), port1));
  return {
    endpoint: port2,
    onError: () => {},
    terminate() {
      port1.close();
      port2.close();
    },
  };
});
