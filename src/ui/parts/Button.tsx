import { Tooltip } from 'radix-ui';
import { type ComponentProps, type ReactNode, useId } from 'react';

interface ButtonProps extends Omit<ComponentProps<'button'>, 'disabled'> {
  variant?: 'plain' | 'primary' | 'quiet';
  /** Why the button cannot be pressed now; it stays focusable and shows this. */
  why?: string | null | undefined;
  /** Tooltip while it can be pressed. */
  tip?: string;
  /** Before the words; where there are none it stands alone, and the button is as wide as high. */
  icon?: (() => ReactNode) | undefined;
  iconOnly?: boolean;
}

/** A button. Disabled means: it shows why, stays in the tab order, and does nothing. */
export function Button(props: ButtonProps) {
  const { variant = 'plain', why, tip, icon: Icon, children, onClick, className, ...more } = props;
  const { iconOnly = Icon !== undefined && !children, ...rest } = more;
  const whyId = useId();
  const button = (
    <button
      type="button"
      className={`button${iconOnly ? ' icon-only' : ''}${className ? ` ${className}` : ''}`}
      data-variant={variant}
      {...(why ? { 'aria-disabled': true, 'aria-describedby': whyId } : {})}
      onClick={why ? (event) => event.preventDefault() : onClick}
      {...rest}
    >
      {Icon ? <Icon /> : null}
      {children}
    </button>
  );
  const text = why ?? tip;
  return (
    <>
      {text ? <Tip text={text}>{button}</Tip> : button}
      {why ? (
        <span id={whyId} className="visually-hidden">
          {why}
        </span>
      ) : null}
    </>
  );
}

/** A button that looks like a link in a text. */
export function LinkButton({ className, ...rest }: ComponentProps<'button'>) {
  return <button type="button" className={className ? `link ${className}` : 'link'} {...rest} />;
}

/** A short explanation on hover and focus. Never the only place of an information: touch screens do not show it. */
export function Tip({ text, children }: { text: ReactNode; children: ReactNode }) {
  return (
    <Tooltip.Root>
      <Tooltip.Trigger asChild>{children}</Tooltip.Trigger>
      <Tooltip.Portal>
        <Tooltip.Content className="tooltip" sideOffset={6} collisionPadding={8}>
          {text}
        </Tooltip.Content>
      </Tooltip.Portal>
    </Tooltip.Root>
  );
}
