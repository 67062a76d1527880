import { memo } from 'react';
import { ExportMenu } from '../parts/ExportMenu';
import { notifyError } from '../state/studio';
import { useStudio } from '../studio-context';
import type { LayersView } from './columns';

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
  /** Two runs are shown as one: there is no recipe of it. */
  isPair: boolean;
  /** Nothing is measured yet. */
  empty: boolean;
  /** What is shown when it is asked. */
  shown(): LayersView;
}

/** Saves what Layers shows. */
export const LayersExport = memo(function LayersExport({ isPair, empty, shown }: LayersExportProps) {
  const studio = useStudio();
  const save = async (kind: (typeof CHOICES)[number]['value']) => {
    const { exportLayers } = await import('../export/save-exports');
    await exportLayers(kind, shown());
  };
  return (
    <ExportMenu
      label="Export the picture and its numbers"
      choices={isPair ? CHOICES.filter(({ value }) => value !== 'json' && value !== 'html') : CHOICES}
      why={empty ? 'Nothing is measured yet.' : null}
      onChoose={(kind) => void save(kind).catch((thrown: unknown) => notifyError(studio, thrown))}
    />
  );
});
