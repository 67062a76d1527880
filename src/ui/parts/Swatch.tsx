import { CONTRIBUTOR_COLOURS } from '../state/recipe-state';

/** The CSS colour of a contributor. */
export function modelColour(colour: number): string {
  return `var(--model-${colour % CONTRIBUTOR_COLOURS})`;
}

/** A contributor's colour; the name stands beside it or in the label. */
export function Swatch({ colour, dot, label }: { colour: number; dot?: boolean; label?: string }) {
  return (
    <span
      className="swatch"
      data-dot={dot || undefined}
      style={{ background: modelColour(colour) }}
      {...(label ? { role: 'img', 'aria-label': label, title: label } : { 'aria-hidden': true })}
    />
  );
}
