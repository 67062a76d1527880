/** What the installed app was opened with: files of the system, and addresses that were shared with it (public/manifest.webmanifest). */
import { walkHandle } from './local/local-files';
import { addFiles } from './state/models';
import { noticed, type Studio } from './state/studio';

/** https://wicg.github.io/web-app-launch/ */
interface LaunchQueue {
  setConsumer(take: (launch: { readonly files?: readonly FileSystemHandle[] }) => void): void;
}

/** Opens the files that the system opens with the app, now and later. */
export function takeLaunches(studio: Studio): void {
  const { launchQueue } = globalThis as { launchQueue?: LaunchQueue };
  launchQueue?.setConsumer(({ files = [] }) => {
    if (files.length === 0) return;
    void noticed(studio, async () => {
      const found = await Promise.all(files.map((handle) => walkHandle(handle)));
      await addFiles(studio, { files: found.flat(), handles: [] });
    });
  });
}
