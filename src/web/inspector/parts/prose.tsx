/** A text in which backticks mark names. */
export function Marked({ text }: { readonly text: string }) {
  return (
    <>
      {text
        .split(/`([^`]+)`/)
        .map((part, index) => (index % 2 === 1 ? <code key={index}>{part}</code> : part))}
    </>
  );
}

/** A sentence in which backticks mark names. */
export function Prose({ text }: { readonly text: string }) {
  return (
    <p>
      <Marked text={text} />
    </p>
  );
}
