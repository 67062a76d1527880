// The studio's entry. The headless command opens the same page with `#headless` and drives the engine itself.
export {};
