/** Whether the browser keeps what this page stores, or may delete it where its disk runs short. */
import { formatBytes } from '../../formats/quantity';
import { notify, type Studio } from './studio';

/** Bytes of a download that are worth a question: some browsers ask the user. */
const LARGE_BYTES = 200e6;

/** Asks the browser, at the first large download of a session, and says what it answers. Never rejects. */
export async function askToKeep(studio: Studio, bytes: number): Promise<void> {
  const { transient } = studio;
  const { storage } = navigator;
  if (bytes < LARGE_BYTES || transient.askedToKeep || !storage?.persist) return;
  transient.askedToKeep = true;
  // where it gives no answer it promises nothing
  const refused = () => false;
  if (await storage.persisted().catch(refused)) return;
  const isKept = await storage.persist().catch(refused);
  const [words, hint] = isKept
    ? ['The browser keeps it until you delete it', 'It is listed under Storage at the top.']
    : [
        'The browser may delete it when the disk runs short',
        'Save what you merge; what was deleted is downloaded again.',
      ];
  notify(studio, 'note', `${formatBytes(bytes)} are downloaded. ${words}.`, hint, 'kept storage');
}
