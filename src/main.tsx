// The studio's entry. The headless command opens the same page with `#headless` and drives the engine from Node.
if (location.hash === '#headless') {
  const { exposeHeadless } = await import('./cli/page');
  exposeHeadless();
}

export {};
