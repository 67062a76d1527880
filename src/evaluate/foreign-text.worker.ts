/** The thread of src/evaluate/foreign-text.ts in a browser. */
import { exposeHere } from '../platform';
import { foreignTextThread } from './foreign-text-thread';

exposeHere(foreignTextThread());
