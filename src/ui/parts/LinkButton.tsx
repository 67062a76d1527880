import type { ComponentProps } from 'react';

/** A button that looks like a link in a text. */
export function LinkButton({ className, ...rest }: ComponentProps<'button'>) {
  return <button type="button" className={className ? `link ${className}` : 'link'} {...rest} />;
}
