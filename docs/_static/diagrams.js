// Draw the Mermaid blocks of a page with the copy of Mermaid in this folder, which only such a page loads.
const folder = document.currentScript.src.replace(/[^/]*$/, "");

document.addEventListener("DOMContentLoaded", () => {
  const blocks = document.querySelectorAll(".highlight-mermaid");
  if (!blocks.length) return;
  for (const block of blocks) {
    const diagram = document.createElement("pre");
    diagram.className = "mermaid";
    diagram.textContent = block.textContent;
    block.replaceWith(diagram);
  }
  const library = document.createElement("script");
  library.src = `${folder}mermaid.js`;
  library.onload = () => {
    mermaid.initialize({ startOnLoad: false, theme: "base", securityLevel: "strict" });
    mermaid.run();
  };
  document.head.append(library);
});
