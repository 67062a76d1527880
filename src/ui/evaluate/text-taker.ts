/** Takes a text, under a name. */
export type TakeText = (name: string, text: string) => Promise<void>;
