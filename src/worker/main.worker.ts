/** The one dedicated worker: everything that fetches, stores or computes runs here. */
import * as Comlink from 'comlink';
import { startThreadsWith } from '../host/threads';
import { createCalls } from './calls';
import { serveCalls } from './remote';
import { startThread } from './start-thread';

startThreadsWith(startThread);
Comlink.expose(serveCalls(createCalls()));
