import { useSignal } from '@preact/signals';

/** The maximum length of a text, because longer texts make the page slow. */
const MOST_CHARACTERS = 200_000;

/** A value as indented JSON. A text stays unchanged. */
export function CodeBlock({ value, label }: { readonly value: unknown; readonly label: string }) {
  const text = typeof value === 'string' ? value : JSON.stringify(value, null, 2);
  return (
    <pre tabIndex={0} role="region" aria-label={label}>
      {text.length > MOST_CHARACTERS ? `${text.slice(0, MOST_CHARACTERS)}\n… (cut)` : text}
    </pre>
  );
}

/** A button that copies a text and confirms it. */
export function CopyButton({ text, children }: { readonly text: () => string; readonly children: string }) {
  const note = useSignal('');
  const copy = async (): Promise<void> => {
    try {
      await navigator.clipboard.writeText(text());
      note.value = 'copied';
    } catch {
      note.value = 'the browser does not allow it';
    }
  };
  return (
    <span>
      <button type="button" onClick={copy}>
        {children}
      </button>{' '}
      <span role="status">{note.value}</span>
    </span>
  );
}
