/** The thread of src/foreign/foreign-text.ts in a browser. */
import { exposeHere } from '../platform';
import { foreignTextThread } from './thread';

exposeHere(foreignTextThread());
