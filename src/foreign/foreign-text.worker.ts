/** The thread of src/foreign/foreign-text.ts in a browser. */
import * as Comlink from 'comlink';
import { foreignTextThread } from './thread';

Comlink.expose(foreignTextThread());
