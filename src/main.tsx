// The entry. The headless command opens the same page with `#headless` and drives the engine from Node.
if (location.hash === '#headless') {
  const { exposeHeadless } = await import('./cli/page');
  exposeHeadless();
} else {
  const [{ startStudio }, { connectEngine }, { keepApp }] = await Promise.all([
    import('./ui/start'),
    import('./engine/client'),
    import('./ui/offline/app-shell'),
  ]);
  const { studio } = startStudio(connectEngine(), document.getElementById('root') as HTMLElement);
  // only what was built has one file per version
  if (import.meta.env.PROD) void keepApp(studio);
}

export {};
