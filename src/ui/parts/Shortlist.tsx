import { toggleSelected } from '../state/studio';
import { useStudio } from '../studio-context';
import { Section } from './Section';

interface ShortlistProps<T> {
  title: string;
  tensors: readonly T[];
  value(tensor: T): string;
}

/** The few tensors that stand out in something; one of them is selected by a press. */
export function Shortlist<T extends { name: string; layer: number | null; module: string }>(
  props: ShortlistProps<T>,
) {
  const { title, tensors, value } = props;
  const studio = useStudio();
  if (tensors.length === 0) return null;
  return (
    <Section title={title}>
      <ul className="shortlist">
        {tensors.map((t) => (
          <li key={t.name}>
            <button type="button" onClick={() => toggleSelected(studio, t.name)} title={t.name}>
              <span className="truncate">
                {t.layer === null ? t.module : `layer ${t.layer} · ${t.module}`}
              </span>
              <span className="numeric">{value(t)}</span>
            </button>
          </li>
        ))}
      </ul>
    </Section>
  );
}
