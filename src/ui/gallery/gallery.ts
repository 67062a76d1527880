/** The example recipes that ship with the studio: YAML files in `recipes/`, each runnable on the sample family. */

interface GalleryRecipe {
  /** The file's name without its ending. */
  id: string;
  title: string;
  /** What it shows, in one line. */
  shows: string;
  /** The file as it is: two lines of comment with title and line, then the recipe. */
  yaml: string;
}

const FILES: Record<string, string> = import.meta.glob('./recipes/*.yml', {
  query: '?raw',
  import: 'default',
  eager: true,
});

/** Those that show a way of writing recipes, ahead of those that show a method. */
const FIRST = ['stages', 'gradient', 'filters', 'exclude', 'stack', 'slices-slerp'];

/** Every example: first what recipes can say, then one or more for each method, by name. */
export const gallery: readonly GalleryRecipe[] = Object.entries(FILES)
  .map(([path, yaml]) => {
    const [title = '', shows = ''] = yaml.split('\n').map((line) => line.replace(/^# /, ''));
    return { id: path.replace(/^.*\/|\.yml$/g, ''), title, shows, yaml };
  })
  .sort((a, b) => rank(a.id) - rank(b.id) || (a.id < b.id ? -1 : 1));

function rank(id: string): number {
  const at = FIRST.indexOf(id);
  return at < 0 ? FIRST.length : at;
}
