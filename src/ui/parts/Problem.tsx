interface ProblemProps {
  className?: string;
  children: string | null | undefined | false;
}

/** Words for what is wrong with the fields above; nothing where nothing is. */
export function Problem({ className, children }: ProblemProps) {
  return children ? (
    <p className={className === undefined ? 'field-problem' : `field-problem ${className}`} role="alert">
      {children}
    </p>
  ) : null;
}
