"use strict";
const reviewer = document.getElementById("reviewer");
const count = document.getElementById("count");
const articles = [...document.querySelectorAll("article")];
const judged = () => articles.filter((article) => article.querySelector("select").value);
const show = () => { count.textContent = `${judged().length} of ${articles.length} judged`; };
const cell = (text) => {
  const plain = text.replace(/[\t\r\n"]/g, " ").trim();
  return /^'*[=+\-@]/.test(plain) ? "'" + plain : plain;
};
document.addEventListener("change", (event) => {
  const article = event.target.closest("article");
  if (article) article.dataset.reviewer = "";
  show();
});
document.getElementById("save").addEventListener("click", () => {
  const initials = cell(reviewer.value);
  const lines = judged().map((article) => [
    article.dataset.row,
    article.querySelector("select").value,
    cell(article.dataset.reviewer) || initials,
    cell(article.querySelector("input").value),
  ]);
  if (lines.some((line) => !line[2])) {
    count.textContent = "give your initials first";
    reviewer.focus();
    return;
  }
  const text = (id) => document.getElementById(id).content.textContent;
  const table = text("head") + text("hidden") + lines.map((line) => line.join("\t") + "\n").join("");
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([table], { type: "text/tab-separated-values" }));
  link.download = "verdicts.tsv";
  link.click();
});
show();
