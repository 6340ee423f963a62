/** Hands the content of a snapshot, gzip in base64, to the user as the file that `custos sandbox --load` reads. */
export async function saveFile(name: string, content: string): Promise<void> {
  const packed = Uint8Array.from(atob(content), (letter) => letter.charCodeAt(0));
  const unpacked = new Blob([packed]).stream().pipeThrough(new DecompressionStream('gzip'));
  const address = URL.createObjectURL(await new Response(unpacked).blob());
  const link = document.createElement('a');
  link.href = address;
  link.download = name;
  link.click();
  URL.revokeObjectURL(address);
}

/** The file of a snapshot as a request body contains it. */
export async function readFileBase64(file: File): Promise<string> {
  const packed = await new Response(file.stream().pipeThrough(new CompressionStream('gzip'))).blob();
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(String(reader.result).replace(/^[^,]*,/, ''));
    reader.onerror = () => reject(new Error(`${file.name} cannot be read`));
    reader.readAsDataURL(packed);
  });
}
