/** The thread of src/foreign/foreign-text.ts in Node. */
import { parentPort } from 'node:worker_threads';
import * as Comlink from 'comlink';
import nodeEndpoint from 'comlink/dist/esm/node-adapter';
import { foreignTextThread } from '../foreign/thread';

Comlink.expose(foreignTextThread(), nodeEndpoint(parentPort!));
