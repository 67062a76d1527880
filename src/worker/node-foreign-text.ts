/** The thread of src/evaluate/foreign-text.ts in Node. */
import { parentPort } from 'node:worker_threads';
import * as Comlink from 'comlink';
import nodeEndpoint from 'comlink/dist/esm/node-adapter';
import { foreignTextThread } from '../evaluate/foreign-text-thread';

Comlink.expose(foreignTextThread(), nodeEndpoint(parentPort!));
