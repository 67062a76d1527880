import { useEffect } from 'react';
import { openSampleTexts } from '../state/evaluation';
import { useFacts, useStudio } from '../studio-context';

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
  const texts = useFacts((s) => s.evaluation.texts);
  useEffect(() => {
    void openSampleTexts(studio);
  }, [studio]);
  return (
    <select
      className="select"
      aria-label={label}
      value={texts.some((t) => t.id === value) ? (value ?? '') : ''}
      onChange={(event) => onChange(event.target.value === '' ? null : event.target.value)}
    >
      <option value="">{none}</option>
      {texts.map((t) => (
        <option key={t.id} value={t.id}>
          {t.name}
        </option>
      ))}
    </select>
  );
}
