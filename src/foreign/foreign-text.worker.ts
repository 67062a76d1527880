/** The thread of src/foreign/foreign-text.ts in a browser. */
import { exposeThread } from '../platform';
import { foreignTextThread } from './thread';

exposeThread(foreignTextThread());
