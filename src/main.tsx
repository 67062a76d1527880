// The entry. The headless command opens the same page with `#headless` and drives the engine from Node.
if (location.hash === '#headless') {
  const { exposeHeadless } = await import('./cli/page');
  exposeHeadless();
} else {
  const [{ startStudio }, { connectEngine }] = await Promise.all([
    import('./ui/start'),
    import('./engine/client'),
  ]);
  startStudio(connectEngine(), document.getElementById('root') as HTMLElement);
}

export {};
