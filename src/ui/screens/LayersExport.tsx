import { memo } from 'react';
import { ExportMenu } from '../parts/ExportMenu';
import { methodTitle, recipeTitle } from '../state/recipe-build';
import { methodOf, notifyError } from '../state/studio';
import { useStudio } from '../studio-context';
import type { LayersSource } from './layers-source';

const CHOICES = [
  { value: 'svg', label: 'Charts as SVG', hint: 'as shown, pinned ones too' },
  { value: 'png', label: 'Charts as PNG', hint: 'as shown, twice the size' },
  { value: 'csv', label: 'Table as CSV', hint: 'every number of every tensor' },
  { value: 'json', label: 'Numbers as JSON', hint: 'in full precision' },
] as const;

interface LayersExportProps {
  /** Nothing is measured yet. */
  empty: boolean;
  /** What the charts show when it is asked. */
  shown(): LayersSource;
}

/** Saves what Layers shows. */
export const LayersExport = memo(function LayersExport({ empty, shown }: LayersExportProps) {
  const studio = useStudio();
  const save = async (kind: (typeof CHOICES)[number]['value']) => {
    const source = shown();
    const facts = studio.store.getState();
    const merged = source.state === 'predicted' ? null : facts.run;
    const title = merged
      ? `${merged.title} ${merged.methodTitle}`
      : `${recipeTitle(facts.recipe)} ${methodTitle(facts.recipe, methodOf(facts.recipe))} predicted`;
    const { exportLayers } = await import('../export/save-exports');
    await exportLayers(kind, { ...source, title }, facts);
  };
  return (
    <ExportMenu
      label="Export charts and numbers"
      choices={CHOICES}
      why={empty ? 'Nothing is measured yet.' : null}
      onChoose={(kind) => void save(kind).catch((thrown: unknown) => notifyError(studio, thrown))}
    />
  );
});
