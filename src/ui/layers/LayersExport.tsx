import { memo } from 'react';
import { ExportMenu } from '../parts/ExportMenu';
import { notifyError } from '../state/studio';
import { useStudio } from '../studio-context';
import type { ShownLayers } from './columns';

const CHOICES = [
  { value: 'svg', label: 'Picture as SVG', hint: 'all shown runs and their difference' },
  { value: 'png', label: 'Picture as PNG', hint: 'the same, twice the size' },
  {
    value: 'csv',
    label: 'Numbers as CSV',
    hint: 'long form: run, tensor, metric, value, exact or predicted',
  },
  { value: 'json', label: 'Numbers as JSON', hint: 'in full precision' },
  { value: 'html', label: 'Report as HTML', hint: 'recipes and pictures of all shown runs' },
] as const;

interface LayersExportProps {
  /** Nothing is measured yet. */
  empty: boolean;
  /** What is shown when it is asked. */
  shown(): ShownLayers;
}

/** Saves what Layers shows. */
export const LayersExport = memo(function LayersExport({ empty, shown }: LayersExportProps) {
  const studio = useStudio();
  const save = async (kind: (typeof CHOICES)[number]['value']) => {
    const { exportLayers } = await import('../export/exported-files');
    await exportLayers(kind, shown(), studio.store.getState().overlap);
  };
  return (
    <ExportMenu
      label="Export the picture and its numbers"
      choices={CHOICES}
      why={empty ? 'Nothing is measured yet.' : null}
      onChoose={(kind) => void save(kind).catch((thrown: unknown) => notifyError(studio, thrown))}
    />
  );
});
