import { formatBytes, formatCounted, formatPercent } from '../../formats/quantity';
import { awaitsMerge } from '../../merge/prediction/predicted-report';
import type { TensorReport } from '../../reports/job';
import { changing } from '../charts/measured';
import { saveFile } from '../local/file-download';
import { Button } from '../parts/Button';
import { CloseIcon } from '../parts/icons';
import { ZipButton } from '../parts/ZipButton';
import { tryMerge } from '../state/generation';
import { whyNotWrite } from '../state/measure';
import type { FinishedRun } from '../state/runs';
import { notifyError, setView } from '../state/studio';
import { useStudio, useStudioState } from '../studio-context';

/** The merge that has just ended: one sentence of what it did, and what can be done with it. */
export function ResultCard({ run, onClose }: { run: FinishedRun; onClose(): void }) {
  const studio = useStudio();
  const whyNotTry = useStudioState(whyNotWrite);
  const { destination, outputFiles } = run;
  const inFolder = destination.kind === 'folder';
  const fileOf = (name: string) => studio.worker.outputFile(destination.name, name);
  const gguf = inFolder ? undefined : outputFiles.find((name) => name.endsWith('.gguf'));
  const showFiles = (filesAt: 'gguf' | 'push' | null) => setView(studio, { tab: 'files', filesAt });
  const saveGguf = (name: string) =>
    fileOf(name).then(
      (file) => saveFile(file, name),
      (thrown: unknown) => notifyError(studio, thrown),
    );
  return (
    <section className="result-card" aria-label="Result of the merge">
      <p role="status">{resultWords(run)}</p>
      <div className="row tight">
        {inFolder ? (
          <Button onClick={() => showFiles(null)}>Show files</Button>
        ) : (
          <ZipButton
            name={destination.name}
            label="Save files"
            files={() => Promise.all(outputFiles.map(async (name) => ({ name, file: await fileOf(name) })))}
            why={null}
          />
        )}
        <Button
          tip={gguf ? `Saves ${gguf}` : 'Choose a GGUF type, then merge again'}
          onClick={() => (gguf ? void saveGguf(gguf) : showFiles('gguf'))}
        >
          {gguf ? 'GGUF' : 'GGUF…'}
        </Button>
        <Button onClick={() => showFiles('push')}>Push…</Button>
        <Button
          tip="Base, contributors and merge answer the same prompt"
          why={whyNotTry}
          onClick={() => void tryMerge(studio)}
        >
          Try
        </Button>
        <Button variant="quiet" iconOnly aria-label="Close the result" onClick={onClose}>
          <CloseIcon />
        </Button>
      </div>
    </section>
  );
}

/** A merge in one sentence: the share of each change's energy that it counted where it left any out, else its size. */
export function resultWords({ report, contributors, methodTitle, planned }: FinishedRun): string {
  const bytes = report.shards.reduce((sum, { bytes }) => sum + bytes, 0);
  const size = `${formatCounted(planned.length, 'tensor')}, ${formatBytes(bytes)}`;
  const shares = contributors.map(({ id, label }) => ({ label, share: keptEnergy(report.tensors, id) }));
  const kept = shares.flatMap(({ label, share }) =>
    share === null ? [] : [`${formatPercent(share)} of ${label}’s`],
  );
  if (!shares.some(({ share }) => share !== null && share < 1)) return `${methodTitle}: ${size}.`;
  return `${methodTitle} keeps ${joined(kept)} change, by energy.`;
}

function joined(words: readonly string[]): string {
  return words.length < 2 ? words.join() : `${words.slice(0, -1).join(', ')} and ${words.at(-1)}`;
}

/**
 * Share of ‖τ‖² that the selection of a contributor keeps over all tensors it changes, in [0, 1]; null where it changes none,
 * or where that is not measured.
 */
export function keptEnergy(reports: readonly TensorReport[], id: string): number | null {
  let square = 0;
  let keptSquare = 0;
  for (const report of reports) {
    const change = changing(report).find((c) => c.id === id);
    if (!change) continue;
    if (change.keptNorm === null || awaitsMerge(report)) return null;
    square += change.norm ** 2;
    keptSquare += change.keptNorm ** 2;
  }
  return square > 0 ? keptSquare / square : null;
}
