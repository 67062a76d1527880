import { useEffect } from 'react';
import { openSampleTexts } from '../state/evaluation';
import { useStudio, useStudioState } from '../studio-context';
import { Select } from './Select';

interface EvaluationTextFieldProps {
  label: string;
  value: string | null;
  /** The choice of no text. */
  none: string;
  onChange(id: string | null): void;
}

/** One of the texts of the Evaluate tab, or none. Texts of one's own are added there. */
export function EvaluationTextField({ label, value, none, onChange }: EvaluationTextFieldProps) {
  const studio = useStudio();
  const texts = useStudioState((s) => s.evaluation.texts);
  useEffect(() => {
    void openSampleTexts(studio);
  }, [studio]);
  return (
    <Select
      aria-label={label}
      value={texts.some((t) => t.id === value) ? (value ?? '') : ''}
      options={[{ value: '', label: none }, ...texts.map((t) => ({ value: t.id, label: t.name }))]}
      onChange={(id) => onChange(id === '' ? null : id)}
    />
  );
}
