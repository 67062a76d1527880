import { CONTRIBUTOR_COLORS } from '../state/recipe-state';

/** The CSS color of a contributor. */
export function modelColor(color: number): string {
  return `var(--model-${color % CONTRIBUTOR_COLORS})`;
}

/** A contributor's color; the name stands beside it or in the label. */
export function Swatch({ color, dot, label }: { color: number; dot?: boolean; label?: string }) {
  return (
    <span
      className="swatch"
      data-dot={dot || undefined}
      style={{ background: modelColor(color) }}
      {...(label ? { role: 'img', 'aria-label': label, title: label } : { 'aria-hidden': true })}
    />
  );
}
