/** The page where the studio itself did not arrive, or cannot run: plain elements, since nothing else is there. */

const BROKEN =
  'A part of the page did not arrive, or this browser is too old for it. Look at the connection and try again; ' +
  'a current Chrome, Edge, Firefox or Safari runs it. Recipes and files kept in this browser are still there.';

/** Browsers give storage, hashing, the graphics card and locks to secure pages only. */
export const INSECURE =
  'This page was opened over plain http, where browsers give it neither storage nor hashing nor the graphics card. ' +
  'Open it over https, or on this machine as http://localhost.';

/** Shows in `root` that the studio could not start and why, and offers to try again. */
export function sayNotStarted(root: HTMLElement, why = BROKEN): void {
  const title = document.createElement('h1');
  title.textContent = 'Amalgam could not start';
  const words = document.createElement('p');
  words.textContent = why;
  const again = document.createElement('button');
  again.type = 'button';
  again.textContent = 'Try again';
  again.addEventListener('click', () => location.reload());
  const page = document.createElement('main');
  page.setAttribute('role', 'alert');
  Object.assign(page.style, {
    maxWidth: '32rem',
    margin: '20vh auto',
    padding: '0 1rem',
    font: '16px/1.5 system-ui',
  });
  Object.assign(title.style, { margin: '0 0 0.75rem', fontSize: '22px', fontWeight: '600' });
  Object.assign(words.style, { margin: '0 0 1.25rem' });
  Object.assign(again.style, {
    padding: '0.45rem 0.9rem',
    border: '1px solid currentColor',
    borderRadius: '5px',
    background: 'none',
    color: 'inherit',
    font: 'inherit',
    cursor: 'pointer',
  });
  page.append(title, words, again);
  root.replaceChildren(page);
}
