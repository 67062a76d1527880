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

/** Examples in their order, the plainest first. */
const ORDER = ['linear', 'ties', 'dare_ties', 'slerp', 'gram', 'adapter', 'stack', 'stages'];

export const gallery: readonly GalleryRecipe[] = Object.entries(FILES)
  .map(([path, yaml]) => {
    const [title = '', shows = ''] = yaml.split('\n').map((line) => line.replace(/^# /, ''));
    return { id: path.replace(/^.*\/|\.yml$/g, ''), title, shows, yaml };
  })
  .sort((a, b) => ORDER.indexOf(a.id) - ORDER.indexOf(b.id));
