// The entry. The hub opens it with the answer to a sign-in.

import { answerIn, handOver } from './ui/sign-in-window';
import { INSECURE, sayNotStarted } from './ui/start-failure';

const answer = answerIn(location.search);
const root = document.getElementById('root') as HTMLElement;
if (answer !== null) {
  handOver(answer, root);
} else if (!isSecureContext) {
  sayNotStarted(root, INSECURE);
} else {
  const [{ startStudio }, { connectWorker }, { installApp }] = await Promise.all([
    import('./ui/start'),
    import('./worker/client'),
    import('./ui/offline/app-shell'),
  ]).catch((thrown: unknown) => {
    sayNotStarted(root);
    throw thrown;
  });
  try {
    const { studio } = startStudio(connectWorker(), root);
    // only a build has one file per version
    if (import.meta.env.PROD) void installApp(studio);
  } catch (thrown) {
    // a browser without workers, for one
    sayNotStarted(root);
    throw thrown;
  }
}
