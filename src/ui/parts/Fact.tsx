/** One line of a list of numbers. */
export function Fact({ label, value, bad }: { label: string; value: string; bad?: boolean }) {
  return (
    <div>
      <dt>{label}</dt>
      <dd className={bad ? 'tone-bad' : undefined}>{value}</dd>
    </div>
  );
}
