/** Where the keyboard goes at once: the recipe before the tabs has dozens of stops. */
const PLACES = [
  { label: 'Skip to the views', selector: '.main-tabs [role="tab"][aria-selected="true"]' },
  { label: 'Skip to Merge', selector: '.merge-button' },
];

/** Seen only while they have the focus: the first stops of the page. */
export function SkipLinks() {
  return (
    <div className="skip-links">
      {PLACES.map(({ label, selector }) => (
        <button
          key={label}
          type="button"
          className="button"
          onClick={() => document.querySelector<HTMLElement>(selector)?.focus()}
        >
          {label}
        </button>
      ))}
    </div>
  );
}
