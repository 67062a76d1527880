/** The thread of src/evaluate/foreign-text.ts in a browser. */
import * as Comlink from 'comlink';
import { foreignTextThread } from './foreign-text-thread';

Comlink.expose(foreignTextThread());
