import { DropdownMenu } from 'radix-ui';
import { Button } from './Button';
import { DownloadIcon } from './icons';

interface ExportMenuProps<T extends string> {
  label: string;
  choices: readonly { value: T; label: string; hint: string }[];
  why?: string | null;
  onChoose(value: T): void;
}

/** A button that opens a list of files to save. */
export function ExportMenu<T extends string>({ label, choices, why = null, onChoose }: ExportMenuProps<T>) {
  if (why !== null) {
    return (
      <Button why={why} aria-label={label}>
        <DownloadIcon />
        Export
      </Button>
    );
  }
  return (
    // a modal menu locks scrolling with a style element, which the page's policy forbids
    <DropdownMenu.Root modal={false}>
      <DropdownMenu.Trigger asChild>
        <button type="button" className="button" data-variant="plain" aria-label={label}>
          <DownloadIcon />
          Export
        </button>
      </DropdownMenu.Trigger>
      <DropdownMenu.Portal>
        <DropdownMenu.Content className="menu" align="end" sideOffset={4} collisionPadding={12}>
          {choices.map((choice) => (
            <DropdownMenu.Item
              key={choice.value}
              className="menu-item"
              onSelect={() => onChoose(choice.value)}
            >
              <span>{choice.label}</span>
              <span className="small quiet">{choice.hint}</span>
            </DropdownMenu.Item>
          ))}
        </DropdownMenu.Content>
      </DropdownMenu.Portal>
    </DropdownMenu.Root>
  );
}
