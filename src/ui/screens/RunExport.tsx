import { ExportMenu } from '../parts/ExportMenu';
import type { FinishedRun, RunState } from '../state/runs';
import { notifyError } from '../state/studio';
import { useStudio } from '../studio-context';

const CHOICES = [
  { value: 'html', label: 'Report as HTML', hint: 'one file: recipe, hashes, charts, numbers' },
  { value: 'json', label: 'Report as JSON', hint: 'in full precision' },
  { value: 'csv', label: 'Table as CSV', hint: 'every number of every tensor' },
] as const;

type Reported = Pick<RunState, 'title' | 'methodTitle' | 'contributors' | 'startedAt'> &
  Pick<FinishedRun, 'report'> & { planned: RunState['planned'] };

/** Saves the report of a finished run. */
export function RunExport({ run }: { run: Reported }) {
  const studio = useStudio();
  const save = async (kind: (typeof CHOICES)[number]['value']) => {
    const { exportRun } = await import('../export/exported-files');
    exportRun(kind, { ...run, tensors: run.planned }, run.startedAt);
  };
  return (
    <ExportMenu
      label={`Export the report of ${run.title}`}
      choices={CHOICES}
      onChoose={(kind) => void save(kind).catch((thrown: unknown) => notifyError(studio, thrown))}
    />
  );
}
