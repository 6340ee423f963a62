/** The maximum length of a text, because longer texts make the page slow. */
const MAX_CHARACTERS = 200_000;

/** A value as indented JSON. A text stays unchanged. */
export function CodeBlock({ value, label }: { readonly value: unknown; readonly label: string }) {
  const text = typeof value === 'string' ? value : JSON.stringify(value, null, 2);
  return (
    <pre tabIndex={0} role="region" aria-label={label}>
      {text.length > MAX_CHARACTERS ? `${text.slice(0, MAX_CHARACTERS)}\n… (cut)` : text}
    </pre>
  );
}
