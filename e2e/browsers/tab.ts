/** One page of a browser as the journeys in several browsers see it: it goes somewhere, and runs a script there. */
export interface Tab {
  readonly browser: string;
  goto(url: string): Promise<void>;
  /** The value of an expression on the page, awaited. */
  run<T>(expression: string): Promise<T>;
  /** Folder into which the browser puts downloads; absent where it has none. */
  readonly downloads?: string;
  /** Ends the browser as a power cut would, and restarts it on the same profile; absent where no profile is stored. */
  restart?(): Promise<Tab>;
  close(): Promise<void>;
}

/**
 * On the page: finds what a user sees and uses it. Elements are known by role and name, as assistive technology knows
 * them; a press is the whole row of events, because menus and tabs listen to the first of them.
 */
const HANDS = `(() => {
  const SELECTORS = {
    button: 'button:not([role])', tab: '[role=tab]', link: 'a[href]', radio: '[role=radio],input[type=radio]', summary: 'summary',
    textbox: 'input:not([type]),input[type=text],input[type=search],input[type=url]',
  };
  const nameOf = (e) => (e.getAttribute('aria-label') ?? (e.labels?.length ? e.labels[0].innerText : e.innerText) ?? '').replace(/\\s+/g, ' ').trim();
  const find = (role, name) => [...document.querySelectorAll(SELECTORS[role])].filter((e) => e.getClientRects().length > 0)
    .find((e) => new RegExp(name).test(nameOf(e)) && e.getAttribute('aria-disabled') !== 'true' && !e.disabled);
  return {
    shows: (text) => new RegExp(text, 'm').test(document.body.innerText.replace(/[\\u00a0\\u202f]/g, ' ')),
    has: (role, name) => find(role, name) !== undefined,
    fill(name, value) {
      const element = find('textbox', name);
      if (!element) return false;
      Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, 'value').set.call(element, value);
      element.dispatchEvent(new Event('input', { bubbles: true }));
      return true;
    },
    submit(name) {
      find('textbox', name).form.requestSubmit();
      return true;
    },
    press(role, name) {
      const element = find(role, name);
      if (!element) return false;
      element.focus();
      for (const type of ['pointerdown', 'mousedown', 'pointerup', 'mouseup']) {
        const Kind = type.startsWith('pointer') ? PointerEvent : MouseEvent;
        element.dispatchEvent(new Kind(type, { bubbles: true, cancelable: true, button: 0 }));
      }
      element.click();
      return true;
    },
  };
})()`;

/** Ceiling for true events: software rendering on a machine with other work on it. */
const PATIENCE_MS = 400_000;

type Role = 'button' | 'tab' | 'link' | 'radio' | 'summary';

/** Actions of a journey on a tab; each waits for its target. */
export interface Person {
  sees(text: string): Promise<void>;
  presses(role: Role, name: string): Promise<void>;
  finds(role: Role, name: string): Promise<void>;
  /** Writes into a field, and sends its form where it has to be sent. */
  fills(name: string, value: string, submit?: 'submit'): Promise<void>;
  /** @param everyMs how often it is looked at */
  until<T>(what: string, expression: string, everyMs?: number, patienceMs?: number): Promise<T>;
}

export function personAt(tab: Tab): Person {
  const until = async <T>(
    what: string,
    expression: string,
    everyMs = 200,
    patienceMs = PATIENCE_MS,
  ): Promise<T> => {
    const deadline = Date.now() + patienceMs;
    for (;;) {
      const value = await tab.run<T | null | false>(expression).catch((thrown: Error) => {
        // the page is being left for another
        if (/context was destroyed/i.test(thrown.message)) return null;
        throw thrown;
      });
      if (value) return value;
      if (Date.now() > deadline) {
        const shown = await tab.run<string>('document.body.innerText');
        throw new Error(`${tab.browser}: ${what} did not come. The page says: … ${shown.slice(-1500)}`);
      }
      await new Promise((resolve) => setTimeout(resolve, everyMs));
    }
  };
  return {
    until,
    sees: (text) => until(`“${text}”`, `${HANDS}.shows(${JSON.stringify(text)})`),
    finds: (role, name) => until(`${role} “${name}”`, `${HANDS}.has('${role}', ${JSON.stringify(name)})`),
    async fills(name, value, submit) {
      const field = JSON.stringify(name);
      await until(`field “${name}”`, `${HANDS}.fill(${field}, ${JSON.stringify(value)})`);
      if (submit) await tab.run(`${HANDS}.submit(${field})`);
    },
    presses: (role, name) => until(`${role} “${name}”`, `${HANDS}.press('${role}', ${JSON.stringify(name)})`),
  };
}
