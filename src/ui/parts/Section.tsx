import { type ReactNode, useId } from 'react';

interface SectionProps {
  title: ReactNode;
  /** At the right end of the heading: a link or a small control. */
  aside?: ReactNode;
  className?: string;
  children: ReactNode;
}

/** A titled part of a panel. */
export function Section({ title, aside, className, children }: SectionProps) {
  const id = useId();
  return (
    <section className={`section${className ? ` ${className}` : ''}`} aria-labelledby={id}>
      <div className="section-head">
        <h2 id={id}>{title}</h2>
        {aside}
      </div>
      {children}
    </section>
  );
}
